//! From the sandbox to the host.

use super::{of_transfer, parted, tar};
use crate::engine::{Engine, Refused};
use crate::exec::Name;
use crate::Docker;
use leasehold_sdk::http::{encoded, Body};
use leasehold_sdk::{
    failed, splice, splice_exactly, stream, Call, Error, InputStream, Lease, MappingKind, OperationResult,
    OutboundMapping, OutboundOperation, SyncOut,
};

/// Makes files of several names into files of their own: an archive holds the second name as a link to the first,
/// which no host takes from a sandbox.
const UNLINK: &str = r#"cd -- "$1" || exit 4
find . -xdev -type f -links +1 -exec sh -c 'for f; do
  t="$f.leasehold-$$"; cp -p -- "$f" "$t" && mv -f -- "$t" "$f" || exit 5
done' sh {} +"#;

/// A copy with links replaced by what they lead to. Arguments: what to copy, and where to.
const FOLLOWED: &str = r#"mkdir -m 700 -- "$2" && cp -RLp -- "$1" "$2/it""#;

/// Where such copies are: the one directory that every image has room in.
const COPIES: &str = "/tmp/.leasehold-";

/// Headers before the one of a file: its long name, its long link, its extended records.
const HEADERS_MAX: usize = 8;

/// Bytes of such a header's records.
const RECORDS_MAX: u64 = 1 << 20;

impl SyncOut for Docker {
    fn sync_out(
        call: &Call<Self::Config>,
        lease: Lease,
        operations: Vec<OutboundOperation>,
    ) -> Result<Vec<OperationResult>, Error> {
        let outward = Outward { engine: Engine::of(&call.config), id: &lease.id };
        let name = Name::of(&call.context.invocation_id);
        let mut copies = 0;
        let mut results = Vec::new();
        for operation in operations {
            let (mut files, mut bytes) = (0, 0);
            for mapping in &operation.mappings {
                copies += 1;
                let copy = format!("{COPIES}{}-{copies}", name.text());
                let (more_files, more_bytes) = outward.mapping(mapping, &copy)?;
                files += more_files;
                bytes += more_bytes;
            }
            results.push(OperationResult { operation_id: operation.operation_id, files, bytes });
        }
        Ok(results)
    }
}

struct Outward<'a> {
    engine: Engine<'a>,
    id: &'a str,
}

impl Outward<'_> {
    fn mapping(&self, mapping: &OutboundMapping, copy: &str) -> Result<(u64, u64), Error> {
        parted(&mapping.source_path)?;
        let source = mapping.source_path.trim_end_matches('/');
        if !mapping.follow_symlinks {
            self.fetched(mapping, source)?;
            return Ok(mapping.sink.totals());
        }
        let copied = self.engine.script(self.id, "copying what links lead to", FOLLOWED, &[source, copy]);
        let fetched = copied.and_then(|_| self.fetched(mapping, &format!("{copy}/it")));
        self.engine.script(self.id, "tidying up", "rm -rf -- \"$1\"", &[copy])?;
        fetched.map(|()| mapping.sink.totals())
    }

    fn fetched(&self, mapping: &OutboundMapping, source: &str) -> Result<(), Error> {
        match mapping.kind {
            MappingKind::Directory => {
                self.engine.script(self.id, "looking for linked files", UNLINK, &[source])?;
                // With a dot, the archive's names are relative to the directory itself.
                let body = self.archive(&format!("{source}/."))?;
                let to = mapping.sink.tar().map_err(of_transfer)?;
                let spliced = splice(body.stream(), &to);
                drop(to);
                // A sink that refused says why.
                let finished = mapping.sink.finish().map_err(of_transfer);
                spliced.and(finished)
            }
            MappingKind::File => {
                let body = self.archive(source)?;
                let size = size(body.stream(), source)?;
                let to = mapping.sink.tar().map_err(of_transfer)?;
                splice_exactly(body.stream(), &to, size)?;
                stream::flush(&to)?;
                drop(to);
                mapping.sink.finish().map_err(of_transfer)
            }
        }
    }

    fn archive(&self, path: &str) -> Result<Body, Error> {
        let path_of = format!("/containers/{}/archive?path={}", encoded(self.id), encoded(path));
        match self.engine.get(&path_of)? {
            Ok(answer) => answer.stream(),
            Err(refused @ Refused { status: 404, .. }) => {
                // Either the container is not there, or the path.
                self.engine.inspect(self.id)?.ok_or_else(leasehold_sdk::gone)?;
                Err(failed("path_missing", format!("{path}: {}", refused.message)))
            }
            Err(refused) => Err(refused.into_error("fetching files")),
        }
    }
}

/// The size of the one file of an archive, whose bytes come next.
fn size(from: &InputStream, path: &str) -> Result<u64, Error> {
    let mut said = None;
    for _ in 0..HEADERS_MAX {
        let header = tar::read(&stream::read_exactly(from, tar::BLOCK)?);
        let Some(header) = header else { break };
        match header.kind {
            b'0' | 0 => return Ok(said.unwrap_or(header.size)),
            b'x' | b'g' | b'L' | b'K' if header.size <= RECORDS_MAX => {
                let all = header.size + tar::padding(header.size);
                let records = stream::read_exactly(from, usize::try_from(all).unwrap_or(0))?;
                if header.kind == b'x' {
                    said = tar::extended_size(&records);
                }
            }
            _ => break,
        }
    }
    Err(failed("no_file", format!("{path} is no regular file")))
}
