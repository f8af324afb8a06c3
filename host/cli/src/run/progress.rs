//! What a person at a terminal sees of a long transfer.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leasehold::Progress;
use std::io::IsTerminal as _;
use std::time::Duration;

/// A transfer that is over before this is not worth a line; most are.
const LONG: Duration = Duration::from_secs(1);

/// How often the bar moves.
const BEAT: Duration = Duration::from_millis(100);

/// Awaits a transfer. One that takes long is shown on standard error while it lasts, when that is a terminal.
pub(super) async fn shown<T>(what: &str, progress: Progress, transfer: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return transfer.await;
    }
    tokio::pin!(transfer);
    if let Ok(done) = tokio::time::timeout(LONG, &mut transfer).await {
        return done;
    }
    let bar = bar(what, &progress);
    let mut beat = tokio::time::interval(BEAT);
    let done = loop {
        tokio::select! {
            done = &mut transfer => break done,
            _ = beat.tick() => bar.set_position(progress.moved()),
        }
    };
    // Nothing of it stays: standard error belongs to the command.
    bar.finish_and_clear();
    done
}

fn bar(what: &str, progress: &Progress) -> ProgressBar {
    let template = match progress.expected() {
        Some(_) => "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
        None => "{spinner} {msg} {binary_bytes} {binary_bytes_per_sec}",
    };
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(progress.expected(), target).with_message(what.to_owned());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
