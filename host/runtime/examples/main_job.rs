//! A host application: takes a folder into a sandbox, runs a command there, brings the changes back.
#![allow(clippy::print_stdout, reason = "an example talks to a person")]

use leasehold::{Command, Environment, For, Leasehold, Streams, WalkOptions};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let state = arguments.next().unwrap_or_else(|| "/tmp/leasehold-example".into());
    let folder = arguments.next().unwrap_or_else(|| ".".into());

    let runtime = Leasehold::builder(state).build().await?;
    let session = Environment::of("local").acquire(&runtime, For::default()).await?;
    let synced = session.sync_in(folder.as_ref(), WalkOptions::default()).await?;

    let (output, mut lines) = mpsc::channel::<bytes::Bytes>(16);
    let (error, mut faults) = mpsc::channel::<bytes::Bytes>(16);
    let shown = tokio::spawn(async move {
        while let Some(piece) = lines.recv().await {
            print!("{}", String::from_utf8_lossy(&piece));
        }
        while faults.recv().await.is_some() {}
    });
    let command = Command {
        argv: ["sh", "-c", "uname -a; ls > listing.txt"].map(String::from).to_vec(),
        ..Command::default()
    };
    let streams = Streams { input: Box::new(tokio::io::empty()), output, error };
    let ran = session.execute(command, streams, CancellationToken::new()).await;
    shown.await?;

    let report = session.sync_out(synced).await?;
    session.release().await?;
    let (exit, bill) = ran?;
    println!("{exit:?}, {} bytes of output, {} files added", bill.bytes_out, report.added.len());
    Ok(())
}
