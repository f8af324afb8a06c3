//! The line that every command runs under.
//!
//! It finds the program, gives it a session of its own so that all of it can be ended at once, and leaves in a
//! file how it ended. A shell says of a command that signal N ended it what it says of one that exits with
//! 128+N, so the two are told alike.

use super::RECORDS;
use crate::engine::Engine;
use leasehold_sdk::Error;

/// What a command runs under. Arguments: directory of records, name of this one, working directory, what to do
/// with input that is left, command.
///
/// `NAME.p` holds the process that leads the command's session, `NAME.x` how the command ended. Records that
/// were read long ago are removed when there are many. Messages of this shell about what it runs go nowhere.
const SUPERVISOR: &str = r#"d=$1 i=$2 w=$3 q=$4; shift 4
said() { echo "$1" >"$d/$i.x"; exit "$2"; }
few() { [ $# -lt 128 ] || find "$d" -name '*.x' -mmin +10 2>/dev/null |
  while read -r f; do rm -f "$f" "${f%.x}.p"; done; }
oom() { n=0; for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ ! -r "$f" ] || while read -r k v; do [ "$k" != oom_kill ] || n=$v; done <"$f"; done; }
few "$d"/*.x
cd -- "$w" 2>/dev/null || said cwd 126
found=missing
case $1 in
  -*) ;;
  */*) if [ -x "$1" ] && [ ! -d "$1" ]; then found=; elif [ -e "$1" ]; then found=denied; fi ;;
  ?*) IFS=:; for p in $PATH; do
      if [ -x "$p/$1" ] && [ ! -d "$p/$1" ]; then found=; break; fi
      [ ! -f "$p/$1" ] || found=denied
    done; unset IFS ;;
esac
[ "$found" != missing ] || said missing 127
[ -z "$found" ] || said denied 126
run='{ echo $$ >"$0"; } 2>/dev/null; exec "$@"'
oom; b=$n
exec 3>&2 2>/dev/null
command -v setsid >/dev/null && l=setsid || l=
(exec 2>&3 3>&-; exec $l /bin/sh -c "$run" "$d/$i.p" "$@")
c=$?; s=$c
if [ $c = 137 ]; then oom; [ "$n" = "$b" ] || s="$c oom"; fi
echo "$s" >"$d/$i.x"
[ -z "$q" ] || timeout 0.2 cat >/dev/null
exit $c"#;

/// Podman throws away output that it has not sent yet as soon as nobody is left to take input. So its supervisor
/// takes what is left, for a moment in which the output leaves.
const TAKE: &str = "take";

/// Ends a command and everything in its session. Its leader may not have begun yet.
const KILLER: &str = r#"n=0; while [ ! -s "$1/$2.p" ] && [ ! -s "$1/$2.x" ] && [ $n -lt 50 ]; do n=$((n+1)); sleep 0.02; done
[ -s "$1/$2.p" ] || exit 0
read -r p <"$1/$2.p"
kill -KILL "-$p" 2>/dev/null || kill -KILL "$p" 2>/dev/null
exit 0"#;

/// The name of a command's record.
#[derive(Clone, Debug)]
pub(crate) struct Name(String);

impl Name {
    /// Made of the id of the call, which is unique.
    pub(crate) fn of(invocation: &str) -> Name {
        Name(invocation.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(60).collect())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// The argument vector of a command under its supervisor.
pub(crate) fn supervised<'a>(name: &'a Name, cwd: &'a str, podman: bool, argv: &'a [String]) -> Vec<&'a str> {
    let left = if podman { TAKE } else { "" };
    let mut all = vec!["/bin/sh", "-c", SUPERVISOR, "leasehold", RECORDS, name.text(), cwd, left];
    all.extend(argv.iter().map(String::as_str));
    all
}

/// Ends a command and everything in its session.
pub(crate) fn killed(engine: Engine<'_>, id: &str, name: &Name) -> Result<(), Error> {
    engine.script(id, "ending a command", KILLER, &[RECORDS, name.text()]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::{Command, Stdio};

    /// Shells that images have, as far as this machine has them.
    const SHELLS: [&[&str]; 4] = [&["sh"], &["dash"], &["bash"], &["busybox", "sh"]];

    #[test]
    fn every_shell_leaves_the_same_record() {
        let place = std::env::temp_dir().join(format!("leasehold-supervisor-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let mut tried = 0;
        for (number, shell) in SHELLS.iter().enumerate() {
            for (at, (command, code, record, output)) in [
                (&["true"][..], 0, "0", ""),
                (&["sh", "-c", "echo out; echo err >&2; exit 7"], 7, "7", "out\n"),
                (&["sh", "-c", "kill -9 $$"], 137, "137", ""),
                (&["exit"], 127, "missing", ""),
                (&["-x"], 127, "missing", ""),
                (&["/etc/passwd"], 126, "denied", ""),
                (&["printf", "%s|", "a b", "$HOME", ""], 0, "0", "a b|$HOME||"),
            ]
            .into_iter()
            .enumerate()
            {
                let name = format!("{number}-{at}");
                let mut line = Command::new(shell[0]);
                line.args(&shell[1..]).args(["-c", SUPERVISOR, "leasehold"]).arg(&place);
                line.args([name.as_str(), "/", TAKE]).args(command).stdin(Stdio::null());
                // A shell that is not here is in no image of this machine either.
                let Ok(ran) = line.output() else { continue };
                tried += 1;
                let said = fs::read_to_string(place.join(format!("{name}.x"))).unwrap();
                let shown = format!("{shell:?} {command:?}");
                assert_eq!((ran.status.code(), said.trim()), (Some(code), record), "{shown}");
                assert_eq!(String::from_utf8_lossy(&ran.stdout), output, "{shown}");
                // Nothing of the supervisor's own.
                let error = if code == 7 { "err\n" } else { "" };
                assert_eq!(String::from_utf8_lossy(&ran.stderr), error, "{shown}");
            }
        }
        fs::remove_dir_all(&place).unwrap();
        assert!(tried >= 7, "no shell was there");
    }

    #[test]
    fn a_killed_command_takes_all_of_its_session_along() {
        let place = std::env::temp_dir().join(format!("leasehold-killer-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let script = "sleep 4321 & sleep 4321 & echo begun >begun; wait";
        let mut line = Command::new("sh");
        line.args(["-c", SUPERVISOR, "leasehold"]).arg(&place).arg("one").arg(&place);
        let mut child = line.args(["", "sh", "-c", script]).stdin(Stdio::null()).spawn().unwrap();
        while !place.join("begun").exists() {
            std::thread::yield_now();
        }
        let leader = fs::read_to_string(place.join("one.p")).unwrap();
        let mut killer = Command::new("sh");
        let killed = killer.args(["-c", KILLER, "leasehold"]).arg(&place).arg("one").status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().code(), Some(137));
        let group = Command::new("kill").args(["-0", "--", &format!("-{}", leader.trim())]).output().unwrap();
        // A group whose processes are dead and not yet taken away still has a name.
        let gone = !group.status.success() || all_dead(leader.trim());
        fs::remove_dir_all(&place).unwrap();
        assert!(gone, "something of the command is left");
    }

    fn all_dead(group: &str) -> bool {
        fs::read_dir("/proc").unwrap().flatten().all(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            let words: Vec<_> = rest.split(' ').collect();
            words.get(2) != Some(&group) || words.first() == Some(&"Z")
        })
    }
}
