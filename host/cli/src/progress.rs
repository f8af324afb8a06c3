//! What a person at a terminal sees of a long transfer.

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use leasehold::{Moved, Progress};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// A transfer that is over before this is not worth a line; most are.
const LONG: Duration = Duration::from_secs(1);

/// How often the bar moves.
const BEAT: Duration = Duration::from_millis(100);

/// Awaits a transfer. One that takes long is shown on standard error while it lasts, when that is a terminal.
pub(crate) async fn shown<T>(what: &str, progress: &Progress, transfer: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return transfer.await;
    }
    tokio::pin!(transfer);
    if let Ok(done) = tokio::time::timeout(LONG, &mut transfer).await {
        return done;
    }
    let bar = bar(what, progress);
    let mut beat = tokio::time::interval(BEAT);
    let done = loop {
        tokio::select! {
            done = &mut transfer => break done,
            _ = beat.tick() => {
                let moved = progress.moved();
                bar.set_message(format!("{what}: {} files", moved.files));
                bar.set_position(moved.bytes);
            }
        }
    };
    // Nothing of it stays: standard error belongs to the command.
    bar.finish_and_clear();
    done
}

/// What a transfer moved, for a person at a terminal.
pub(crate) fn summary(what: &str, moved: Moved, time: Duration) {
    if std::io::stderr().is_terminal() {
        let (all, rate) = (HumanBytes(moved.bytes), moved.bytes as u128 * 1_000 / time.as_millis().max(1));
        let rate = HumanBytes(u64::try_from(rate).unwrap_or(u64::MAX));
        let _ = writeln!(std::io::stderr().lock(), "{what} {} files of {all} at {rate}/s", moved.files);
    }
}

fn bar(what: &str, progress: &Progress) -> ProgressBar {
    let expected = Some(progress.expected().bytes).filter(|bytes| *bytes > 0);
    let template = match expected {
        Some(_) => "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
        None => "{spinner} {msg} {binary_bytes} {binary_bytes_per_sec}",
    };
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(expected, target).with_message(what.to_owned());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
