//! A command under way, over a connection of its own: input one way, pieces of output and error the other.
//!
//! Bytes of pieces are spliced; only headers come here. The connection is taken over with an upgrade, as the
//! engine's own clients do, so that input can be closed while output still comes.

use super::frames::{piece, Piece, HEADER};
use crate::engine::{message, Engine, Refused};
use leasehold_sdk::connect::Connection;
use leasehold_sdk::stream::{self, broken, poll, Pollable};
use leasehold_sdk::{time, Error, InputStream, OutputStream};

/// Bytes of the head of an answer.
const HEAD_MAX: usize = 16 << 10;

/// How much of anything is moved at once.
const MOST: u64 = 1 << 20;

/// A command under way.
pub(crate) struct Attached {
    connection: Connection,
    /// Whether the head of the answer was read.
    answered: bool,
    /// What came with it.
    early: Vec<u8>,
    header: Vec<u8>,
    piece: Option<Piece>,
}

/// How watching a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The stream ended; whether the command did is another question.
    Stream,
    /// The time was over.
    Time,
}

/// What one side can do now.
enum Now {
    /// It moved something.
    Moved,
    /// It waits for this.
    Waits(Pollable),
    /// It is done.
    Done,
}

impl Attached {
    /// Starts a prepared command.
    pub(crate) fn start(engine: Engine<'_>, id: &str, exec: &str) -> Result<Attached, Error> {
        let mut attached = Attached::begin(engine, exec)?;
        attached.answered(engine, id)?;
        Ok(attached)
    }

    /// Asks for the start of a prepared command, and does not wait for it.
    pub(crate) fn begin(engine: Engine<'_>, exec: &str) -> Result<Attached, Error> {
        let connection = Connection::open(engine.authority())?;
        let body = r#"{"Detach":false,"Tty":false}"#;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            Engine::path(&format!("/exec/{exec}/start")),
            engine.authority(),
            body.len()
        );
        stream::write(connection.outgoing(), head.as_bytes())?;
        Ok(Attached { connection, answered: false, early: vec![], header: vec![], piece: None })
    }

    /// Waits until it has started.
    pub(crate) fn answered(&mut self, engine: Engine<'_>, id: &str) -> Result<(), Error> {
        if std::mem::replace(&mut self.answered, true) {
            return Ok(());
        }
        let from = self.connection.incoming();
        let end = loop {
            if let Some(at) = self.early.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match stream::read(from, 4 << 10)? {
                Some(more) if self.early.len() < HEAD_MAX => self.early.extend_from_slice(&more),
                _ => return Err(broken("the engine's answer has no end")),
            }
        };
        let head = String::from_utf8_lossy(&self.early[..end]).into_owned();
        self.early = self.early.split_off(end);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        if matches!(status, 101 | 200) {
            return Ok(());
        }
        let length = length(&head).min(HEAD_MAX);
        while self.early.len() < length {
            match stream::read(from, (length - self.early.len()) as u64)? {
                Some(more) => self.early.extend_from_slice(&more),
                None => break,
            }
        }
        let refused = Refused { status, message: message(&String::from_utf8_lossy(&self.early)) };
        Err(engine.why_not(id, refused))
    }

    /// Hands all its input over at once, and closes it.
    pub(crate) fn told(&self, input: &[u8]) -> Result<(), Error> {
        stream::write(self.connection.outgoing(), input)?;
        self.connection.finish()
    }

    /// The next piece of a short command, and whether it is of standard error; none at the end.
    pub(crate) fn said(&mut self) -> Result<Option<(bool, Vec<u8>)>, Error> {
        let Some(piece) = self.next_piece()? else { return Ok(None) };
        let mut all = Vec::new();
        while (all.len() as u64) < piece.left {
            let bytes = self.some(piece.left - all.len() as u64)?;
            if bytes.is_empty() {
                break;
            }
            all.extend_from_slice(&bytes);
        }
        Ok(Some((piece.error, all)))
    }

    /// Moves everything between the command and its streams until it ends, or until a time of the clock that only
    /// goes forward.
    pub(crate) fn watch(
        &mut self,
        input: &mut Input,
        to: &Outputs<'_>,
        until: Option<u64>,
    ) -> Result<Ended, Error> {
        let timer = until.map(|until| time::after(until.saturating_sub(time::ticks_ms())));
        loop {
            let out = self.output(to)?;
            if matches!(out, Now::Done) {
                return Ok(Ended::Stream);
            }
            let inward = self.input(input)?;
            if timer.as_ref().is_some_and(Pollable::ready) {
                return Ok(Ended::Time);
            }
            let mut waits: Vec<&Pollable> = timer.iter().collect();
            match (&out, &inward) {
                (Now::Moved, _) | (_, Now::Moved) => continue,
                (out, inward) => {
                    for now in [out, inward] {
                        if let Now::Waits(pollable) = now {
                            waits.push(pollable);
                        }
                    }
                }
            }
            poll(&waits);
        }
    }

    /// Output and error of a short command.
    pub(crate) fn collected(&mut self, most: usize) -> Result<(String, String), Error> {
        let mut kept = [Vec::new(), Vec::new()];
        while let Some((error, bytes)) = self.said()? {
            let kept = &mut kept[usize::from(error)];
            let room = most.saturating_sub(kept.len()).min(bytes.len());
            kept.extend_from_slice(&bytes[..room]);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((text(&kept[0]), text(&kept[1])))
    }

    fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        let mut header = [0; HEADER];
        let mut filled = 0;
        while filled < HEADER {
            let bytes = self.some((HEADER - filled) as u64)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            header[filled..filled + bytes.len()].copy_from_slice(&bytes);
            filled += bytes.len();
        }
        piece(header).map(Some).ok_or_else(no_stream)
    }

    fn some(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        if !self.early.is_empty() {
            let rest =
                self.early.split_off(self.early.len().min(usize::try_from(most).unwrap_or(usize::MAX)));
            return Ok(std::mem::replace(&mut self.early, rest));
        }
        Ok(stream::read(self.connection.incoming(), most)?.unwrap_or_default())
    }

    /// One step of what the command writes.
    fn output(&mut self, to: &Outputs<'_>) -> Result<Now, Error> {
        let from = self.connection.incoming();
        let Some(piece) = &mut self.piece else {
            let wanted = HEADER - self.header.len();
            let bytes = if self.early.is_empty() {
                match from.read(wanted as u64) {
                    Ok(bytes) => bytes,
                    // Cut off or ended: what it means is asked elsewhere.
                    Err(_) => return Ok(Now::Done),
                }
            } else {
                let rest = self.early.split_off(self.early.len().min(wanted));
                std::mem::replace(&mut self.early, rest)
            };
            if bytes.is_empty() {
                return Ok(Now::Waits(from.subscribe()));
            }
            self.header.extend_from_slice(&bytes);
            if let Ok(header) = <[u8; HEADER]>::try_from(self.header.as_slice()) {
                self.header.clear();
                self.piece = Some(self::piece(header).ok_or_else(no_stream)?).filter(|piece| piece.left > 0);
            }
            return Ok(Now::Moved);
        };
        let target = to.of(*piece);
        // A reader that went away is no reason to stop the command, whose other stream may still be read.
        let room = target.check_write().ok();
        if room == Some(0) {
            return Ok(Now::Waits(target.subscribe()));
        }
        let most = piece.left.min(MOST).min(room.unwrap_or(MOST));
        let moved = if !self.early.is_empty() {
            let rest =
                self.early.split_off(self.early.len().min(usize::try_from(most).unwrap_or(usize::MAX)));
            let bytes = std::mem::replace(&mut self.early, rest);
            if room.is_some() {
                let _ = target.write(&bytes);
            }
            bytes.len() as u64
        } else {
            let moved = match room {
                Some(_) => target.splice(from, most),
                None => from.skip(most),
            };
            match moved {
                Ok(moved) => moved,
                // Of the two sides, the one that takes was just asked.
                Err(_) => return Ok(Now::Done),
            }
        };
        if moved == 0 {
            return Ok(Now::Waits(from.subscribe()));
        }
        piece.left = piece.left.saturating_sub(moved);
        if piece.left == 0 {
            self.piece = None;
        }
        Ok(Now::Moved)
    }

    /// One step of what the command reads. What was written is on its way before the half is closed, so that
    /// closing waits for nobody.
    fn input(&mut self, input: &mut Input) -> Result<Now, Error> {
        let to = self.connection.outgoing();
        let room = match (&input, to.check_write()) {
            (Input::Closed, _) => return Ok(Now::Done),
            (_, Ok(room)) => room,
            // Nobody reads it any more.
            (_, Err(_)) => {
                *input = Input::Closed;
                return Ok(Now::Done);
            }
        };
        if room == 0 {
            return Ok(Now::Waits(to.subscribe()));
        }
        let Input::Open(from) = &input else {
            *input = Input::Closed;
            self.connection.finish()?;
            return Ok(Now::Moved);
        };
        match to.splice(from, MOST) {
            Ok(0) => Ok(Now::Waits(from.subscribe())),
            Ok(_) => Ok(Now::Moved),
            Err(_) => {
                let _ = to.flush();
                *input = Input::Ending;
                Ok(Now::Moved)
            }
        }
    }
}

/// What a command reads.
pub(crate) enum Input {
    /// There may be more.
    Open(InputStream),
    /// All of it is handed over, and not all of it sent.
    Ending,
    /// The command sees the end.
    Closed,
}

fn no_stream() -> Error {
    broken("what the engine sends is not the stream of a command")
}

/// The announced length of a body.
fn length(head: &str) -> usize {
    let value = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    value.unwrap_or(HEAD_MAX)
}

/// Where output and error go.
pub(crate) struct Outputs<'a> {
    /// Standard output.
    pub(crate) output: &'a OutputStream,
    /// Standard error.
    pub(crate) error: &'a OutputStream,
}

impl<'a> Outputs<'a> {
    fn of(&self, piece: Piece) -> &'a OutputStream {
        if piece.error {
            self.error
        } else {
            self.output
        }
    }
}
