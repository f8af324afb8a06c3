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
kill -KILL -- "-$p" 2>/dev/null || kill -KILL "$p" 2>/dev/null
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
