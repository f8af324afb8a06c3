//! From inside a jail: nothing of the host can be seen, reached or changed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests use the helpers")]

mod common;

use common::{one, run, said, sh, state};
use leasehold_authority::jail::{Bounds, Command, Demand, Exit, Grant, Isolation, JailError, Jails, Layer};

#[test]
fn all_of_this_holds_for_an_ordinary_user() {
    common::again_as_ordinary_user();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_holds_the_system_and_the_jails_own_directories_only() {
    let state = state();
    let jails = one(&state).await;
    let listed = said(&jails, "ls -A /").await;
    for name in listed.lines() {
        let known = [
            "bin",
            "dev",
            "etc",
            "home",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "proc",
            "run",
            "sbin",
            "tmp",
            "usr",
            "var",
            "workspace",
        ];
        assert!(known.contains(&name), "{name} in {listed}");
    }
    assert_eq!(said(&jails, "ls -A /home /run /workspace /tmp | grep -v : | grep . || :").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_of_the_host_is_there_but_the_system() {
    let state = state();
    let jails = one(&state).await;
    let secret = tempfile::NamedTempFile::new().unwrap();
    let binary = std::env::current_exe().unwrap();
    for path in [
        "/root",
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh",
        "/var/lib",
        "/var/log",
        "/boot",
        "/mnt",
        "/sys",
        "/opt",
        "/srv",
        state.path().to_str().unwrap(),
        secret.path().to_str().unwrap(),
        binary.to_str().unwrap(),
    ] {
        let ran = run(&jails, Command::new(["ls", "-d", path])).await.unwrap();
        assert_eq!(ran.exit, Exit::Exited(2), "{path} is there: {}", ran.output);
    }
    let users = said(&jails, "cut -d: -f1 /etc/passwd").await;
    assert_eq!(users, "sandbox\nroot\nnobody\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_and_the_root_cannot_be_written() {
    let state = state();
    let jails = one(&state).await;
    for path in [
        "/x",
        "/usr/x",
        "/usr/bin/x",
        "/etc/x",
        "/etc/passwd",
        "/dev/x",
        "/lib/x",
        "/proc/sys/kernel/hostname",
        "/etc/ssl/certs/x",
        "/run/x",
    ] {
        let ran = run(&jails, sh(&format!("echo x >> {path}"))).await.unwrap();
        assert_ne!(ran.exit, Exit::Exited(0), "{path}");
    }
    for path in ["/workspace/x", "/home/x", "/tmp/x", "/dev/shm/x", "/var/tmp/y"] {
        said(&jails, &format!("echo x > {path}")).await;
    }
    said(&jails, "echo gone > /dev/null && head -c 8 /dev/urandom | wc -c && test -e /dev/zero").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_is_nobody_special_and_stays_so() {
    let state = state();
    let jails = one(&state).await;
    assert_eq!(
        said(&jails, "id -u; id -g; id -un; hostname; echo $HOME").await,
        "1000\n1000\nsandbox\nleasehold\n/home\n"
    );
    let status = said(&jails, "cat /proc/self/status").await;
    for line in [
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ] {
        assert!(status.contains(line), "{line} in {status}");
    }
    if common::is_root() {
        assert!(status.contains("Groups:\t \n") || status.contains("Groups:\t\n"), "{status}");
    }
    assert_eq!(said(&jails, "ulimit -c").await, "0\n");
    assert_eq!(said(&jails, "cat /proc/self/oom_score_adj").await, "500\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_of_the_host_can_be_seen() {
    let state = state();
    let jails = one(&state).await;
    let own = std::process::id();
    let numbers = said(&jails, "echo /proc/[0-9]*").await;
    let numbers: Vec<u32> =
        numbers.split_whitespace().map(|path| path.trim_start_matches("/proc/").parse().unwrap()).collect();
    assert!(numbers.len() <= 3 && numbers.iter().all(|number| *number < 100), "{numbers:?}");
    let ran = run(&jails, sh(&format!("kill -0 {own}"))).await.unwrap();
    assert_ne!(ran.exit, Exit::Exited(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_process_can_neither_be_read_nor_ended_from_inside() {
    let state = state();
    let jails = one(&state).await;
    for script in [
        "ls /proc/1/fd/",
        "cat /proc/1/environ | grep .",
        "cat /proc/1/maps | grep .",
        "head -c 1 /proc/1/mem",
        "ls /proc/1/root/",
        "ls /proc/1/cwd/",
    ] {
        let ran = run(&jails, sh(script)).await.unwrap();
        assert_ne!(ran.exit, Exit::Exited(0), "{script}: {}", ran.output);
    }
    run(&jails, sh("kill -9 1; kill -STOP 1; kill 1; kill -9 -1; true")).await.unwrap();
    said(&jails, "true").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_handle_of_the_host_is_open_in_a_command() {
    let state = state();
    let _held = std::fs::File::open("/etc/passwd").unwrap();
    let jails = one(&state).await;
    assert_eq!(said(&jails, "ls /proc/self/fd/ | tr '\\n' ' '").await, "0 1 2 3 ");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_network_but_an_own_loopback() {
    let state = state();
    let jails = one(&state).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = |port| {
        let script = format!(
            "use IO::Socket::INET; exit(IO::Socket::INET->new(PeerAddr=>'127.0.0.1:{port}') ? 0 : 9)"
        );
        Command::new(["perl".to_owned(), "-e".into(), script])
    };
    assert_eq!(run(&jails, connect(port)).await.unwrap().exit, Exit::Exited(9));
    assert_eq!(said(&jails, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n'").await, "lo");
    // The own loopback works.
    let own = "use IO::Socket::INET; my $s=IO::Socket::INET->new(Listen=>1,LocalAddr=>'127.0.0.1'); exit(IO::Socket::INET->new(PeerAddr=>'127.0.0.1:'.$s->sockport) ? 0 : 9)";
    assert_eq!(run(&jails, Command::new(["perl", "-e", own])).await.unwrap().exit, Exit::Exited(0));
    // Granted, it is the host's.
    let open = Isolation::default().with_host_network();
    jails.destroy("one").await.unwrap();
    let jail = jails.create("one", Bounds::default(), &open).await.unwrap();
    assert_eq!(jail.layers[&Layer::NetworkNamespace], Grant::Waived);
    assert_eq!(run(&jails, connect(port)).await.unwrap().exit, Exit::Exited(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_jail_sees_nothing_of_another() {
    let state = state();
    let jails = one(&state).await;
    jails.create("two", Bounds::default(), &Isolation::default()).await.unwrap();
    said(&jails, "echo secret > /workspace/secret; echo secret > /tmp/secret; echo secret > /dev/shm/secret; sleep 100000 > /dev/null 2>&1 &").await;
    let script = "ls /workspace /tmp /dev/shm /home; ps ax | grep '[s]leep 100000'";
    let (mut output, mut error) = (Vec::new(), Vec::new());
    jails.run("two", &sh(script), tokio::io::empty(), &mut output, &mut error).await.unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "/dev/shm:\n\n/home:\n\n/tmp:\n\n/workspace:\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_reach_outside_are_refused() {
    let state = state();
    let jails = one(&state).await;
    // name, number on x86-64, number on arm64, arguments, answer: EPERM 1, ENOSYS 38, EAFNOSUPPORT 97
    let calls = [
        ("mount", 165, 40, "'a','/tmp','tmpfs',0,0", 1),
        ("umount2", 166, 39, "'/proc',0", 1),
        ("pivot_root", 155, 41, "'/tmp','/tmp'", 1),
        ("chroot", 161, 51, "'/tmp'", 1),
        ("unshare user", 272, 97, "0x10000000", 1),
        ("unshare mount", 272, 97, "0x20000", 1),
        ("unshare time", 272, 97, "0x80", 1),
        ("clone user", 56, 220, "0x10000011,0,0,0,0", 1),
        ("clone3", 435, 435, "0,0", 38),
        ("setns", 308, 268, "0,0", 1),
        ("keyctl", 250, 219, "0,-3,0,0,0", 1),
        ("add_key", 248, 217, "'user','a','b',1,-3", 1),
        ("request_key", 249, 218, "'user','a','b',-3", 1),
        ("bpf", 321, 280, "0,0,0", 1),
        ("perf_event_open", 298, 241, "0,0,0,0,0", 1),
        ("userfaultfd", 323, 282, "0", 1),
        ("io_uring_setup", 425, 425, "8,0", 1),
        ("open_by_handle_at", 304, 265, "0,0,0", 1),
        ("init_module", 175, 105, "0,0,0", 1),
        ("kexec_load", 246, 104, "0,0,0,0", 1),
        ("reboot", 169, 142, "0,0,0,0", 1),
        ("swapon", 167, 224, "'/tmp/x',0", 1),
        ("open_tree", 428, 428, "-100,'/',1", 1),
        ("move_mount", 429, 429, "-1,'',-1,'',0", 1),
        ("fsopen", 430, 430, "'tmpfs',0", 1),
        ("mount_setattr", 442, 442, "-1,'',0,0,0", 1),
        ("a call of the future", 1000, 1000, "0", 38),
        ("socket to the hypervisor", 41, 198, "40,1,0", 97),
        ("socket of packets", 41, 198, "17,3,0", 97),
        ("socket of cryptography", 41, 198, "38,5,0", 97),
        ("terminal input", 16, 29, "0,0x5412,'x'", 1),
        ("terminal input, high bits set", 16, 29, "0,0x100005412,'x'", 1),
    ];
    for (name, x86, arm, arguments, answer) in calls {
        let number = if cfg!(target_arch = "x86_64") { x86 } else { arm };
        let script = format!("@a=({arguments}); $r=syscall({number},@a); print $r == -1 ? $!+0 : 'allowed'");
        let ran = run(&jails, Command::new(["perl", "-e", &script])).await.unwrap();
        assert_eq!(ran.output, answer.to_string(), "{name}: {:?} {}", ran.exit, ran.error);
    }
    // Calls by other numbers than the processor's own mode end the process: x32 on x86-64.
    if cfg!(target_arch = "x86_64") {
        let script = "syscall(0x40000000 + 39); print 'allowed'";
        assert_eq!(run(&jails, Command::new(["perl", "-e", script])).await.unwrap().exit, Exit::Signaled(31));
    }
    let ran = run(&jails, sh("unshare -Ur true; unshare -r id -u")).await.unwrap();
    assert_ne!(ran.exit, Exit::Exited(0), "{}", ran.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_the_host_lead_nowhere() {
    let state = state();
    let jails = one(&state).await;
    said(&jails, "ln -s /etc/shadow a; ln -s ../../../../../../etc/shadow b; ln -s /proc/1/root c").await;
    for path in ["a", "b", "c/etc/shadow", "/proc/self/root/etc/shadow"] {
        assert_ne!(run(&jails, Command::new(["cat", path])).await.unwrap().exit, Exit::Exited(0), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_layer_is_reported_and_only_some_can_be_waived() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let jail = jails.create("one", Bounds::default(), &Isolation::default()).await.unwrap();
    assert_eq!(jail.layers.len(), Layer::ALL.len());
    for (layer, grant) in &jail.layers {
        let required = layer.default_demand() == Demand::Required;
        assert!(!required || *grant == Grant::Granted, "{layer}: {grant:?}");
    }
    for layer in Layer::ALL {
        assert_eq!(Layer::from_name(layer.name()), Some(*layer));
        assert_eq!(Isolation::default().waive(*layer).is_ok(), layer.waivable());
    }
    let error = Isolation::default().waive(Layer::PidNamespace).err().unwrap();
    assert!(matches!(error, JailError::NotWaivable { layer: Layer::PidNamespace }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waived_layer_is_left_out() {
    let state = state();
    let jails = Jails::open(state.path()).unwrap();
    let less = Isolation::default().waive(Layer::Seccomp).unwrap().waive(Layer::UtsNamespace).unwrap();
    let less = less.waive(Layer::PseudoTerminals).unwrap();
    let jail = jails.create("one", Bounds::default(), &less).await.unwrap();
    assert_eq!(jail.layers[&Layer::Seccomp], Grant::Waived);
    assert!(said(&jails, "cat /proc/self/status").await.contains("Seccomp:\t0\n"));
    assert_eq!(said(&jails, "ls /dev/pts").await, "");
    if common::is_root() {
        // Then its user is one of the host, but still a powerless one of its own.
        jails.destroy("one").await.unwrap();
        let less = Isolation::default().waive(Layer::UserNamespace).unwrap();
        jails.create("one", Bounds::default(), &less).await.unwrap();
        let id: u32 = said(&jails, "id -u").await.trim().parse().unwrap();
        assert!(id >= 0x7000_0000, "{id}");
        assert!(
            said(&jails, "cat /proc/self/status; echo x > x").await.contains("CapEff:\t0000000000000000")
        );
    } else {
        let less = Isolation::default().waive(Layer::UserNamespace).unwrap();
        let error = jails.create("two", Bounds::default(), &less).await.err().unwrap();
        assert!(matches!(error, JailError::Unsupported { layer: Layer::MountNamespace, .. }), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pseudo_terminals_are_the_jails_own() {
    let state = state();
    let jails = one(&state).await;
    assert_eq!(said(&jails, "ls /dev/pts").await, "ptmx\n");
    said(&jails, "script -qc 'tty > /workspace/tty' /dev/null < /dev/null > /dev/null").await;
    assert_eq!(said(&jails, "cat /workspace/tty").await, "/dev/pts/0\n");
}
