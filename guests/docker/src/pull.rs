//! Getting an image.

use crate::engine::{judged, Engine, Refused};
use leasehold_sdk::http::{encoded, Method};
use leasehold_sdk::{failed, log, stream, time, Error};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Time to the first word of a registry, and between two, in milliseconds: a layer may be unpacked in silence.
const PATIENCE_MS: u64 = 600_000;

/// How often people are told how far it is, in milliseconds.
const TOLD_EVERY_MS: u64 = 2_000;

/// The longest line of progress; engines write one object a line.
const LINE_MAX: usize = 64 << 10;

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: String,
    #[serde(default)]
    error: Option<String>,
    #[serde(default, rename = "progressDetail")]
    detail: Option<Detail>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Detail {
    #[serde(default)]
    current: u64,
    #[serde(default)]
    total: u64,
}

impl Engine<'_> {
    /// The user of an image that is there; none when it is not.
    pub(crate) fn image(&self, image: &str) -> Result<Option<String>, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Image {
            config: Option<Configured>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Configured {
            #[serde(default)]
            user: String,
        }
        let parts: Vec<_> = image.split('/').map(encoded).collect();
        match self.get(&format!("/images/{}/json", parts.join("/")))? {
            Ok(answer) => {
                let image: Image = answer.json()?;
                Ok(Some(image.config.map(|config| config.user).unwrap_or_default()))
            }
            Err(Refused { status: 404, .. }) => Ok(None),
            Err(refused) => Err(refused.into_error("looking at an image")),
        }
    }

    /// Pulls an image, and says how far it is.
    pub(crate) fn pull(&self, image: &str) -> Result<(), Error> {
        let (name, tag) = split(image);
        let path = format!("/images/create?fromImage={}&tag={}", encoded(name), encoded(tag));
        let request = self.request(Method::Post, &path).first_byte_within(PATIENCE_MS);
        let missing = |reason: &str| {
            failed(
                "image_missing",
                format!("the image `{image}` is not there and cannot be pulled: {reason}"),
            )
        };
        let answer = match judged(request.send()?)? {
            Ok(answer) => answer,
            Err(refused) => return Err(missing(&refused.message)),
        };
        let body = answer.stream()?;
        let mut lines = Lines::default();
        let mut progress = Progress { image, layers: BTreeMap::new(), told: time::ticks_ms() };
        while let Some(bytes) = stream::read(body.stream(), 64 << 10)? {
            for line in lines.of(&bytes) {
                let Ok(line) = serde_json::from_slice::<Line>(&line) else { continue };
                // One engine answers with an error, another says it at the end of a good answer.
                if let Some(reason) = line.error {
                    return Err(missing(&reason));
                }
                progress.note(line);
            }
        }
        log::info(&format!("pulled {image}"));
        Ok(())
    }
}

struct Progress<'a> {
    image: &'a str,
    layers: BTreeMap<String, Detail>,
    told: u64,
}

impl Progress<'_> {
    fn note(&mut self, line: Line) {
        if let Some(detail) = line.detail.filter(|detail| detail.total > 0) {
            self.layers.insert(line.id, detail);
        }
        let now = time::ticks_ms();
        if now.saturating_sub(self.told) < TOLD_EVERY_MS {
            return;
        }
        self.told = now;
        let sum = |of: fn(&Detail) -> u64| self.layers.values().map(of).sum::<u64>() >> 20;
        let (current, total) = (sum(|layer| layer.current), sum(|layer| layer.total));
        log::info(&format!("pulling {}: {current} of {total} MiB known so far", self.image));
    }
}

/// Lines of a text that comes in pieces. A line that is too long is left out.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn of(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.0.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let rest = self.0.split_off(end + 1);
            lines.push(std::mem::replace(&mut self.0, rest));
        }
        if self.0.len() > LINE_MAX {
            self.0.clear();
        }
        lines
    }
}

/// Name and tag of an image; without a tag all tags of it would be pulled. A digest stands for a tag.
fn split(image: &str) -> (&str, &str) {
    if let Some((name, digest)) = image.split_once('@') {
        return (name, digest);
    }
    match image.rsplit_once(':') {
        // A colon before a slash is a port.
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_split_at_its_tag_and_not_at_a_port() {
        assert_eq!(split("debian"), ("debian", "latest"));
        assert_eq!(split("debian:12"), ("debian", "12"));
        assert_eq!(split("localhost:5000/a/b"), ("localhost:5000/a/b", "latest"));
        assert_eq!(split("localhost:5000/a:1"), ("localhost:5000/a", "1"));
        assert_eq!(split("a@sha256:12"), ("a", "sha256:12"));
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut lines = Lines::default();
        assert!(lines.of(b"{\"a\"").is_empty());
        assert_eq!(lines.of(b":1}\n{}\n{"), [b"{\"a\":1}\n".to_vec(), b"{}\n".to_vec()]);
    }
}
