//! From the host into the sandbox: unpacked beside the target, in a directory that only root enters, and moved to
//! its place when it is whole.

use super::{of_transfer, parted, tar};
use crate::container::metadata;
use crate::engine::{judged, Engine};
use crate::exec::Name;
use crate::Docker;
use leasehold_sdk::http::{encoded, Answer, Method, Request};
use leasehold_sdk::transfer::{EntryKind, Source};
use leasehold_sdk::{
    failed, log, splice, splice_exactly, stream, Call, Error, InboundMapping, InboundOperation, Lease,
    MappingKind, OperationResult, OutputStream, PostUploadCommand, SyncIn,
};

/// What is unpacked first carries this name, which walks of the workspace pass over.
const STAGED: &str = ".paperclip-upload.leasehold-";

/// Puts what was unpacked in place, once it is told to. Until then it waits beside the upload, and whatever ends it,
/// nothing stays that was not put in place. Arguments: what is unpacked, the target, and the directory above both.
///
/// An engine goes on unpacking for a moment after an upload broke off, so what it unpacks is removed more than once.
/// What was unpacked is given to whoever owns the place it goes to. A directory takes the place of all that was
/// there, and keeps the mode of what was.
const PLACE_DIRECTORY: &str = r#"set -e
tidy() { rm -rf -- "$1"; [ -n "$all" ] || for n in 1 2 3 4 5; do sleep 0.1; rm -rf -- "$1"; done; }
all=; trap 'tidy "$1"' EXIT
mkdir -p -- "$3"; mkdir -m 700 -- "$1"; echo ready
read -r go; [ "$go" = go ]
o=$2; [ -d "$o" ] && [ ! -L "$o" ] || o=$3
u=$(stat -c %u:%g -- "$o"); [ "$u" = 0:0 ] || chown -Rh -- "$u" "$1"
chmod 755 -- "$1"; [ ! -d "$2" ] || [ -L "$2" ] || chmod "$(stat -c %a -- "$2")" -- "$1"
if [ -d "$2" ] && [ ! -L "$2" ]; then
  mv -- "$2" "$1.old" && mv -- "$1" "$2" && rm -rf -- "$1.old"
else rm -f -- "$2"; mv -- "$1" "$2"; fi
all=1"#;

/// The same for one file, which the archive brings in a directory of its own.
const PLACE_FILE: &str = r#"set -e
tidy() { rm -rf -- "$1"; [ -n "$all" ] || for n in 1 2 3 4 5; do sleep 0.1; rm -rf -- "$1"; done; }
all=; trap 'tidy "$1"' EXIT
mkdir -p -- "$3"; echo ready
read -r go; [ "$go" = go ]
u=$(stat -c %u:%g -- "$3"); [ "$u" = 0:0 ] || chown -h -- "$u" "$1/file"
if [ -L "$2" ]; then rm -f -- "$2"; elif [ -d "$2" ]; then echo "it is a directory" >&2; exit 1; fi
mv -f -- "$1/file" "$2"
all=1"#;

impl SyncIn for Docker {
    fn sync_in(
        call: &Call<Self::Config>,
        lease: Lease,
        operations: Vec<InboundOperation>,
    ) -> Result<Vec<OperationResult>, Error> {
        let inward = Inward {
            engine: Engine::of(&call.config),
            id: &lease.id,
            cwd: call.config.workspace(),
            name: Name::of(&call.context.invocation_id),
            user: metadata(&lease).map(|known| known.user).filter(|user| !user.is_empty()),
        };
        let mut staged = 0;
        operations.into_iter().map(|operation| inward.operation(operation, &mut staged)).collect()
    }
}

struct Inward<'a> {
    engine: Engine<'a>,
    id: &'a str,
    cwd: &'a str,
    name: Name,
    user: Option<String>,
}

impl Inward<'_> {
    fn operation(&self, operation: InboundOperation, staged: &mut u32) -> Result<OperationResult, Error> {
        let (mut files, mut bytes) = (0, 0);
        for mapping in &operation.mappings {
            *staged += 1;
            let (more_files, more_bytes) = self.mapping(mapping, *staged)?;
            files += more_files;
            bytes += more_bytes;
        }
        for command in &operation.post_upload {
            self.command(command)?;
        }
        Ok(OperationResult { operation_id: operation.operation_id, files, bytes })
    }

    fn mapping(&self, mapping: &InboundMapping, number: u32) -> Result<(u64, u64), Error> {
        let (above, _) = parted(&mapping.target_path)?;
        let target = mapping.target_path.trim_end_matches('/');
        let name = format!("{STAGED}{}-{number}", self.name.text());
        let staged = format!("{}/{name}", above.trim_end_matches('/'));
        let script = match mapping.kind {
            MappingKind::Directory => PLACE_DIRECTORY,
            MappingKind::File => PLACE_FILE,
        };
        let arguments = [staged.as_str(), target, above];
        let mut place = self.engine.waiting(self.id, "putting files in place", script, &arguments)?;
        let uploaded = match mapping.kind {
            MappingKind::Directory => {
                place.ready()?;
                self.directory(&mapping.source, &staged)
            }
            MappingKind::File => {
                // Its archive makes the directory it is unpacked in; only the one above has to be there.
                if above != "/" && above != self.cwd {
                    place.ready()?;
                }
                self.file(mapping, above, &name)
            }
        };
        match uploaded {
            Ok(()) => place.go().map(|()| mapping.source.totals()),
            Err(error) => {
                // What went wrong is told; that it could not be tidied up as well is for the log.
                if !place.give_up() {
                    log::warn(&format!("{staged} could not be removed from the sandbox"));
                }
                Err(error)
            }
        }
    }

    fn directory(&self, source: &Source, staged: &str) -> Result<(), Error> {
        let archive = source.tar().map_err(of_transfer)?;
        self.unpacked(self.archive(staged).send_from(None, |to| splice(&archive, to).map(drop))?)
    }

    fn file(&self, mapping: &InboundMapping, above: &str, name: &str) -> Result<(), Error> {
        let next = mapping.source.next().map_err(of_transfer)?;
        let Some((entry, Some(content))) = next else { return Err(no_file()) };
        let EntryKind::File(size) = entry.kind else { return Err(no_file()) };
        let directory = tar::directory(&format!("{name}/"), 0o700)?;
        let header = tar::file(&format!("{name}/file"), mapping.mode.unwrap_or(entry.mode), size)?;
        let padding = tar::padding(size);
        let length = (2 * tar::BLOCK + tar::END.len()) as u64 + size + padding;
        let write = |to: &OutputStream| {
            stream::write(to, &[directory, header].concat())?;
            splice_exactly(&content, to, size)?;
            // Announced and sent are the same only if nothing follows.
            if stream::read(&content, 1)?.is_some() {
                return Err(stream::broken("the file grew while it was sent"));
            }
            stream::write(to, &tar::END[..usize::try_from(padding).unwrap_or(0)])?;
            stream::write(to, &tar::END)
        };
        self.unpacked(self.archive(above).send_from(Some(length), write)?)
    }

    /// A request that unpacks its body into a directory.
    fn archive(&self, directory: &str) -> Request {
        let path = format!("/containers/{}/archive?path={}", encoded(self.id), encoded(directory));
        self.engine.request(Method::Put, &path).header("content-type", "application/x-tar")
    }

    fn unpacked(&self, answer: Answer) -> Result<(), Error> {
        match judged(answer)? {
            Ok(answer) => answer.bytes(0).map(drop),
            Err(refused) => Err(refused.of_container("unpacking files")),
        }
    }

    fn command(&self, command: &PostUploadCommand) -> Result<(), Error> {
        let PostUploadCommand { command, cwd, timeout_ms } = command;
        let cwd = cwd.as_deref().unwrap_or(self.cwd);
        let line = "cd -- \"$1\" && exec /bin/sh -c \"$2\"";
        let timed = "cd -- \"$1\" && exec timeout -s KILL \"$3\" /bin/sh -c \"$2\"";
        let seconds = timeout_ms.map(|ms| ms.div_ceil(1_000).to_string());
        let mut argv =
            vec!["/bin/sh", "-c", if seconds.is_some() { timed } else { line }, "leasehold", cwd, command];
        argv.extend(seconds.as_deref());
        let ran = self.engine.run(self.id, self.user.as_deref(), argv)?;
        match ran.code {
            0 => Ok(()),
            code => Err(failed(
                "post_upload_failed",
                format!("`{command}` ended with {code}: {} {}", ran.output.trim(), ran.error.trim()),
            )),
        }
    }
}

fn no_file() -> Error {
    failed("no_file", "the host offers no regular file where one was announced")
}
