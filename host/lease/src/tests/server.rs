//! A PostgreSQL server on loopback, for one test binary or one test.
//!
//! It runs under a shell that waits for this process's end on a pipe, so it ends with the tests however they
//! end, and its data with it. Where no server is installed its tests are skipped, by name; where everything
//! is required (`CI=true`) that is a failure.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// Takes the folder of the server's programs and a port. Says `ready`, then does what it is told line by
/// line, until nobody can tell it anything any more.
const SHELL: &str = r#"
set -eu
bin=$1 port=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/leasehold-pg.XXXXXX")
cd "$dir"
end() { "$bin/pg_ctl" -D data -m immediate -w stop >/dev/null 2>&1 || true; cd /; rm -rf "$dir"; }
trap end EXIT
trap '' INT HUP TERM
"$bin/initdb" -D data -U leasehold -A trust -E UTF8 --locale=C --no-sync --no-instructions >log 2>&1
cat >>data/postgresql.conf <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 400
shared_buffers = 32MB
fsync = off
full_page_writes = off
CONF
"$bin/pg_ctl" -D data -l log -w start >/dev/null 2>&1 || { tail -5 log >&2; exit 1; }
echo ready
while read -r order; do
  case $order in
    restart) "$bin/pg_ctl" -D data -l log -m immediate -w restart >/dev/null 2>&1 ;;
    stop) "$bin/pg_ctl" -D data -m immediate -w stop >/dev/null 2>&1 ;;
    start) "$bin/pg_ctl" -D data -l log -w start >/dev/null 2>&1 ;;
  esac
  echo done
done
"#;

/// A running server.
pub(super) struct Server {
    port: u16,
    _shell: Child,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Server {
    /// The server of this test binary; none where it has to be skipped.
    pub(super) fn shared() -> Option<&'static Server> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        SERVER.get_or_init(Server::start).as_ref()
    }

    /// A server of its own.
    pub(super) fn start() -> Option<Server> {
        let Some(programs) = programs() else {
            let required = std::env::var("CI").is_ok_and(|it| it == "true");
            assert!(
                !required,
                "no PostgreSQL server under /usr/lib/postgresql; install Debian's `postgresql`"
            );
            eprintln!("skipped: no PostgreSQL server is installed (Debian: `postgresql`)");
            return None;
        };
        // Another may take the port before the server does; then another is tried.
        let started = (0..5).find_map(|_| try_start(&programs));
        Some(started.expect("the PostgreSQL server does not start"))
    }

    /// Where a schema of this name is, which is made when it is not there.
    pub(super) fn address(&self, schema: &str) -> String {
        let all = format!("host=127.0.0.1 port={} user=leasehold dbname=postgres", self.port);
        let make = || {
            let mut client = postgres::Client::connect(&all, postgres::NoTls).unwrap();
            client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).unwrap();
        };
        // The client has a runtime of its own, which must not be started within the test's.
        std::thread::scope(|scope| scope.spawn(make).join()).unwrap();
        format!("{all} options='-c search_path={schema}'")
    }

    /// `restart` (without a warning to anybody), `stop` or `start`.
    pub(super) fn tell(&self, order: &str) {
        let mut talk = self.talk.lock().unwrap();
        writeln!(talk.0, "{order}").unwrap();
        let mut line = String::new();
        talk.1.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n", "after {order}");
    }
}

fn try_start(programs: &PathBuf) -> Option<Server> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // The server refuses to run as root.
    let mut shell = match rustix::process::geteuid().is_root() {
        true => {
            let mut shell = Command::new("setpriv");
            shell.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "sh"]);
            shell
        }
        false => Command::new("sh"),
    };
    shell.args(["-c", SHELL, "sh"]).arg(programs).arg(port.to_string());
    // In a group of its own: whoever ends the tests' group must leave it the time to clean up.
    shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let stdin = shell.stdin.take().unwrap();
    let mut stdout = BufReader::new(shell.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    (line == "ready\n").then(|| Server { port, _shell: shell, talk: Mutex::new((stdin, stdout)) })
}

/// The folder with the newest server's programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.map(|version| version.unwrap().path().join("bin"));
    folders.filter(|bin| bin.join("postgres").exists() && bin.join("initdb").exists()).max()
}
