//! How a command ended, after its stream did.
//!
//! The engine is asked first, for that is quickest. Where it does not know, contradicts itself or is gone, the
//! record that the sandbox wrote decides.

use super::{Name, Standing, RECORDS};
use crate::container::{out_of_memory, stopped};
use crate::engine::Engine;
use leasehold_sdk::{failed, gone, log, time, Error};

/// How a command ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// With this code, and whether its stream was there to the end.
    Code {
        /// The code.
        code: i64,
        /// Whether output may be missing.
        cut: bool,
    },
    /// Its time was over before it did.
    TimedOut,
}

/// What an engine may say a moment after a command ended, in milliseconds between two questions.
const MOMENTS_MS: [u64; 5] = [0, 2, 10, 40, 150];

/// How long an engine that is gone is waited for, in milliseconds: longer than one takes to be started again.
const ENGINE_GONE_MS: u64 = 60_000;

/// Waits up to a second for a record. Says `gone` when the command's processes are gone and left none.
const READER: &str = r#"n=0
while [ ! -s "$1/$2.x" ] && [ $n -lt 20 ]; do
  if [ -s "$1/$2.p" ]; then read -r p <"$1/$2.p"; [ -d "/proc/$p" ] || l=$((l+1)); [ "${l:-0}" -lt 5 ] || break; fi
  n=$((n+1)); sleep 0.05
done
if [ -s "$1/$2.x" ]; then read -r c <"$1/$2.x"; echo "$c"
elif [ -s "$1/$2.p" ]; then if [ -d "/proc/$p" ]; then echo running; else echo gone; fi
else echo none; fi"#;

/// How a command ended whose stream did.
pub(crate) fn settled(
    engine: Engine<'_>,
    id: &str,
    exec: &str,
    name: &Name,
    until: Option<u64>,
) -> Result<Outcome, Error> {
    for pause in MOMENTS_MS {
        if pause > 0 {
            time::sleep(pause);
        }
        match engine.standing(exec) {
            Ok(Some(Standing { running: false, exit_code: Some(code) })) => {
                // These may be a fault of the engine, of the sandbox or of the command.
                if matches!(code, 125..=127 | 137) || code < 0 {
                    break;
                }
                return Ok(Outcome::Code { code, cut: false });
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error @ Error::Denied(_)) => return Err(error),
            Err(_) => break,
        }
    }
    let cut = !matches!(engine.standing(exec), Ok(Some(Standing { running: false, .. })));
    if cut {
        log::warn(
            "the stream of a command was cut off before the command ended; its exit code is waited for",
        );
    }
    recorded(engine, id, name, until, cut)
}

fn recorded(
    engine: Engine<'_>,
    id: &str,
    name: &Name,
    until: Option<u64>,
    cut: bool,
) -> Result<Outcome, Error> {
    let mut unreachable_since = None;
    let mut nothing = 0;
    loop {
        if until.is_some_and(|until| time::ticks_ms() >= until) {
            return Ok(Outcome::TimedOut);
        }
        let argv = vec!["/bin/sh", "-c", READER, "leasehold", RECORDS, name.text()];
        let read = match engine.run(id, Some("0"), argv) {
            Ok(ran) => ran,
            Err(Error::Transient(fault)) => {
                let now = time::ticks_ms();
                if now - *unreachable_since.get_or_insert(now) > ENGINE_GONE_MS {
                    let message =
                        format!("the engine is gone; the command goes on without it: {}", fault.message);
                    return Err(leasehold_sdk::transient(fault.category, message));
                }
                time::sleep(200);
                continue;
            }
            Err(error) => return Err(error),
        };
        unreachable_since = None;
        // An engine may say on the output why it could not run the reader.
        let said = if read.code == 0 { read.output.trim() } else { "none" };
        match said {
            "running" => {}
            "missing" => return Err(failed("program_not_found", "the program is not in the image")),
            "denied" => return Err(failed("program_not_executable", "the program cannot be executed")),
            "cwd" => return Err(failed("cwd_missing", "the working directory is not there")),
            "gone" | "none" | "" => {
                nothing += 1;
                // A record is written a moment after the command's processes are gone.
                if nothing >= 3 {
                    return Err(lost(engine, id, &read.error)?);
                }
            }
            said => {
                let (code, why) = said.split_once(' ').unwrap_or((said, ""));
                if why == "oom" {
                    return Err(out_of_memory());
                }
                let unreadable = |_| failed("record_unreadable", "how the command ended cannot be read");
                return Ok(Outcome::Code { code: code.parse().map_err(unreadable)?, cut });
            }
        }
    }
}

/// Why a command ended without a record: its supervisor was killed with it, or never began.
fn lost(engine: Engine<'_>, id: &str, said: &str) -> Result<Error, Error> {
    let container = engine.inspect(id)?.ok_or_else(gone)?;
    if !container.state.running || container.state.oom_killed {
        return Ok(stopped(&container));
    }
    let message = match said.trim() {
        "" => "the command was killed from outside, its supervisor with it".to_owned(),
        said => format!("no command can be run in the image; it needs /bin/sh: {said}"),
    };
    Ok(failed("command_lost", message))
}
