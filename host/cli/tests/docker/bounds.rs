//! What a sandbox may have, and what is refused.

use crate::common::sandbox::ran;
use crate::shop::Shop;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub(crate) fn memory_that_is_used_up_is_said_so(shop: &Shop<'_>) {
    shop.configured(", memoryBytes = 33554432");
    let hungry = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let (code, output, error) = shop.run(&[], &["sh", "-c", hungry]);
    assert_eq!((code, output.as_str()), (137, ""), "{error}");
    assert!(error.contains("out of memory"), "{error}");
}

pub(crate) fn processes_are_bounded_there_is_no_network_and_no_way_to_more_rights(shop: &Shop<'_>) {
    shop.configured(", processes = 16, cpuMillis = 500");
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 5 & done; echo all";
    let (code, output, error) = shop.run(&[], &["sh", "-c", many]);
    assert!(code != 0 && output.is_empty() && error.contains("fork"), "{code} {output} {error}");
    let facts = "ls /sys/class/net; grep NoNewPrivs /proc/self/status";
    let (code, output, _) = shop.run(&[], &["sh", "-c", facts]);
    assert_eq!((code, output.as_str()), (0, "lo\nNoNewPrivs:\t1\n"));
}

pub(crate) fn what_would_open_the_machine_is_refused(shop: &Shop<'_>) {
    for (more, said) in [
        (", mounts = [\"/:/host\"]", "mounts"),
        (", binds = [\"/:/host\"]", "binds"),
        (", privileged = true", "privileged"),
        (", network = \"host\"", "network"),
        (", network = \"container:x\"", "network"),
        (", engine = \"http://docker/../x\"", "engine"),
    ] {
        shop.configured(more);
        let (code, output, error) = shop.run(&[], &["true"]);
        assert!(code == 125 && output.is_empty() && error.contains(said), "{more}: {code} {error}");
    }
}

pub(crate) fn an_image_that_cannot_be_had_is_named(shop: &Shop<'_>) {
    for more in ["", ", pull = \"never\""] {
        shop.configured(more);
        let arguments = ["--image", "localhost/no-such-image:7"];
        let (code, output, error) = shop.run(&arguments, &["true"]);
        assert_eq!((code, output.as_str()), (125, ""));
        assert!(error.contains("image_missing") && error.contains("localhost/no-such-image:7"), "{error}");
    }
    let (code, _, error) = ran(&shop.place, &["run", "--provider", "docker", "--no-sync", "--", "true"]);
    assert!(code == 125 && error.contains("image"), "{error}");
}

pub(crate) fn an_engine_that_is_not_there_is_said_so(shop: &Shop<'_>) {
    shop.configured(", engine = \"http://elsewhere\"");
    let nowhere = shop.place.path().join("nobody.sock");
    let grant = format!("unix-http=elsewhere={}", nowhere.display());
    let (code, _, error) = shop.run(&[], &["true"]);
    assert!(code == 125 && error.contains("elsewhere"), "{error}");
    assert_eq!(shop.tell(&["provider", "grant", "docker", &grant]).0, 0);
    let (code, output, error) = shop.tell(&["env", "probe", &shop.environment]);
    assert_eq!(code, 1, "{output} {error}");
    assert!(format!("{output}{error}").contains("not to be reached"), "{output} {error}");
    // Whether something was made there is known once there is somebody to ask.
    assert_eq!(shop.tell(&["provider", "revoke", "docker", &grant]).0, 0);
    let there = format!("unix-http=elsewhere={}", shop.engine.socket().display());
    assert_eq!(shop.tell(&["provider", "grant", "docker", &there]).0, 0);
    crate::common::sandbox::until("nothing waits for the engine", || {
        shop.tell(&["reconcile"]) == (0, String::new(), String::new())
    });
}

pub(crate) fn an_engine_at_an_address_serves_like_one_at_a_socket(shop: &Shop<'_>) {
    let port = forwarded(shop.engine.socket());
    shop.configured(&format!(", engine = \"http://127.0.0.1:{port}\""));
    let (code, _, error) = shop.run(&[], &["true"]);
    assert!(code == 125 && error.contains(&format!("http=http://127.0.0.1:{port}")), "{error}");
    for grant in [format!("http=http://127.0.0.1:{port}"), format!("tcp=127.0.0.1:{port}")] {
        assert_eq!(shop.tell(&["provider", "grant", "docker", &grant]).0, 0);
    }
    let ended = shop.run(&[], &["sh", "-c", "echo out; exit 4"]);
    assert_eq!(ended, (4, "out\n".into(), String::new()));
    // What was refused made nothing, which is known once the engine can be asked.
    shop.tell(&["reconcile"]);
}

/// A port that leads to a socket, for as long as the process lives.
fn forwarded(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            forward(stream, &socket);
        }
    });
    port
}

fn forward(stream: TcpStream, socket: &Path) {
    let Ok(engine) = UnixStream::connect(socket) else { return };
    let (there, back) = (engine.try_clone().unwrap(), stream.try_clone().unwrap());
    let (mut from, mut to) = (stream, there);
    std::thread::spawn(move || {
        copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (engine, back);
    std::thread::spawn(move || {
        copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

fn copy(from: &mut impl Read, to: &mut impl Write) {
    // Either side may go first.
    let _ = std::io::copy(from, to);
}
