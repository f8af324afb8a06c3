//! `leasehold-builder`: what `cargo guests` and `cargo verify` run.

use std::io::Write;
use std::process::ExitCode;
use std::{env, io};

const USAGE: &str = "usage: leasehold-builder build|templates|embed|verify|where

  build      build guests and fixtures into components (`cargo guests`)
  templates  build the templates of all languages, with their tools (`cargo templates`)
  embed      take the providers that are shipped inside the host over into it
  verify     build, lint, document and test everything (`cargo verify`)
  where      print the directory of the components";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["build"] => leasehold_builder::build_all().and_then(|built| print(&built.to_string())),
        ["templates"] => leasehold_builder::template::build_all().and_then(|built| print(&built)),
        ["embed"] => {
            leasehold_builder::build_all().and_then(|_| leasehold_builder::embed::embed()).map(|()| 0)
        }
        ["where"] => print(&leasehold_builder::guests_dir().display().to_string()),
        ["verify"] => leasehold_builder::verify::run(),
        _ => {
            complain(USAGE);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn print(text: &str) -> anyhow::Result<i32> {
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(0)
}

fn complain(text: &str) {
    // With standard error closed there is nobody left to tell.
    _ = writeln!(io::stderr().lock(), "{text}");
}
