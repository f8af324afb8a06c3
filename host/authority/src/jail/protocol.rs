//! What the host and the first process of a jail say to each other. Fixed sizes: the receiver has no heap.

/// One message of the jail: while it is set up to the host, and for each command to its report pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The new user namespace needs its ids written from outside.
    NeedsIds,
    /// Set up; `refused` has a bit for each best-effort step that was refused.
    Ready { refused: u32 },
    /// A step failed. `at` is an index into the plan, or one of [`Stage`].
    Failed { at: u32, errno: i32 },
    /// The command exited by itself.
    Exited { code: i32 },
    /// The command was ended by a signal.
    Signaled { signal: i32 },
}

/// Size of a [`Word`] on the wire; far below what a pipe writes in one piece.
pub(super) const WORD: usize = 12;

impl Word {
    pub(super) fn encode(self) -> [u8; WORD] {
        let (kind, a, b): (u32, u32, i32) = match self {
            Word::NeedsIds => (1, 0, 0),
            Word::Ready { refused } => (2, refused, 0),
            Word::Failed { at, errno } => (3, at, errno),
            Word::Exited { code } => (4, 0, code),
            Word::Signaled { signal } => (5, 0, signal),
        };
        let mut bytes = [0; WORD];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..8].copy_from_slice(&a.to_ne_bytes());
        bytes[8..].copy_from_slice(&b.to_ne_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; WORD]) -> Option<Word> {
        let [k0, k1, k2, k3, a0, a1, a2, a3, b0, b1, b2, b3] = bytes;
        let (a, b) = (u32::from_ne_bytes([a0, a1, a2, a3]), i32::from_ne_bytes([b0, b1, b2, b3]));
        match u32::from_ne_bytes([k0, k1, k2, k3]) {
            1 => Some(Word::NeedsIds),
            2 => Some(Word::Ready { refused: a }),
            3 => Some(Word::Failed { at: a, errno: b }),
            4 => Some(Word::Exited { code: b }),
            5 => Some(Word::Signaled { signal: b }),
            _ => None,
        }
    }
}

/// What the host asks of the jail's first process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Start a command; its standard streams, report pipe and [launch](super::launch) come as handles.
    Run { id: u64, size: u64 },
    /// Signal every process of the command's session, and see that none outlives the command.
    End { id: u64, signal: i32 },
}

/// Size of a [`Request`] on the wire.
pub(super) const REQUEST: usize = 24;

/// Handles that come with [`Request::Run`]: standard input, output, error, report, launch.
pub(super) const RUN_HANDLES: usize = 5;

impl Request {
    pub(super) fn encode(self) -> [u8; REQUEST] {
        let (kind, signal, id, size): (u32, i32, u64, u64) = match self {
            Request::Run { id, size } => (1, 0, id, size),
            Request::End { id, signal } => (2, signal, id, 0),
        };
        let mut bytes = [0; REQUEST];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..8].copy_from_slice(&signal.to_ne_bytes());
        bytes[8..16].copy_from_slice(&id.to_ne_bytes());
        bytes[16..].copy_from_slice(&size.to_ne_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; REQUEST]) -> Option<Request> {
        let four = |at: usize| bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).unwrap_or([0; 4]);
        let eight = |at: usize| bytes.get(at..at + 8).and_then(|part| part.try_into().ok()).unwrap_or([0; 8]);
        let (id, size) = (u64::from_ne_bytes(eight(8)), u64::from_ne_bytes(eight(16)));
        match u32::from_ne_bytes(four(0)) {
            1 => Some(Request::Run { id, size }),
            2 => Some(Request::End { id, signal: i32::from_ne_bytes(four(4)) }),
            _ => None,
        }
    }
}

/// Steps that are not rows of the plan. Values start above any plan's length.
pub(super) struct Stage;

impl Stage {
    pub(super) const SESSION: u32 = 1001;
    pub(super) const HANDLES: u32 = 1002;
    pub(super) const PROPAGATION: u32 = 1003;
    pub(super) const ROOT: u32 = 1004;
    pub(super) const HOSTNAME: u32 = 1005;
    pub(super) const LOOPBACK: u32 = 1006;
    pub(super) const PIVOT: u32 = 1007;
    pub(super) const LIMITS: u32 = 1008;
    pub(super) const USER_NAMESPACE: u32 = 1009;
    pub(super) const IDS: u32 = 1010;
    pub(super) const CAPABILITIES: u32 = 1011;
    pub(super) const NO_NEW_PRIVILEGES: u32 = 1012;
    pub(super) const SECCOMP: u32 = 1013;
    pub(super) const PROC: u32 = 1014;
    pub(super) const HOST: u32 = 1015;
    pub(super) const CGROUP_NAMESPACE: u32 = 1016;
    pub(super) const SLOTS: u32 = 1020;
    pub(super) const FORK: u32 = 1021;
    pub(super) const LAUNCH: u32 = 1022;
    pub(super) const STREAMS: u32 = 1023;
    pub(super) const DIRECTORY: u32 = 1024;
    pub(super) const EXEC: u32 = 1025;
}

/// Bits of [`Word::Ready`].
pub(super) const REFUSED_CGROUP_NAMESPACE: u32 = 1;
/// Bits of [`Word::Ready`].
pub(super) const REFUSED_PSEUDO_TERMINALS: u32 = 2;
