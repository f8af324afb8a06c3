//! A host that makes a jail, starts a process in it and waits: for tests that end such a host by force.
//!
//! `hold <state directory> <jail> <marker>`: the marker is an argument of the process in the jail.

#![allow(clippy::print_stdout, reason = "the one who started this waits for the line")]

use leasehold_authority::jail::{Bounds, Command, Isolation, Jails};
use std::path::Path;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [state, name, marker] = arguments.as_slice() else {
        return Err("usage: hold <state directory> <jail> <marker>".into());
    };
    let jails = Jails::open(Path::new(state))?;
    let bounds = Bounds { processes: Some(50), ..Bounds::default() };
    jails.create(name, bounds, &Isolation::default()).await?;
    let background = Command::new(["sh", "-c", "setsid sleep 100000 & echo", marker]);
    jails.run(name, &background, tokio::io::empty(), tokio::io::sink(), tokio::io::sink()).await?;
    println!("held");
    let script = "while :; do sleep 100000; done";
    let command = Command::new(["sh", "-c", script, marker]);
    jails.run(name, &command, tokio::io::empty(), tokio::io::sink(), tokio::io::sink()).await?;
    Ok(())
}
