//! Where the values of secrets come from.

use leasehold_contract::secret::is_uuid;
use secrecy::SecretString;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;

/// The longest value. Keys are a few kilobytes at most. Hit: the secret cannot be resolved.
const VALUE_MAX: u64 = 64 << 10;

/// How long a command may take; one that asks a person for a password is waited for.
const COMMAND_TIME: Duration = Duration::from_secs(60);

/// Whom a secret is resolved for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// The tenant.
    pub tenant: String,
    /// The environment, which may be gone when the purpose is a teardown.
    pub environment: String,
    /// The run, if there is one.
    pub run: Option<String>,
    /// What for.
    pub purpose: Purpose,
}

/// What a secret is resolved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Work of an environment.
    Use,
    /// Ending what was made with it. The environment may be gone or point elsewhere, so a host's own check of
    /// the environment's binding does not apply.
    Teardown,
}

/// A future that a resolver returns.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<SecretString, ResolveError>> + Send + 'a>>;

/// Knows the values of secrets.
pub trait Resolver: std::fmt::Debug + Send + Sync {
    /// The value behind a reference: a UUID, or `scheme:place`.
    fn resolve<'a>(&'a self, reference: &'a str, consumer: &'a Consumer) -> Resolving<'a>;
}

/// Why a secret has no value. Never holds a value, nor what a command said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nobody here resolves such references.
    #[error("secrets of the kind `{kind}` are not resolved here; {remedy}")]
    NotServed {
        /// The scheme, or `id`.
        kind: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The place is not there or cannot be read.
    #[error("`{reference}` cannot be read: {reason}")]
    Unreadable {
        /// The reference.
        reference: String,
        /// Why.
        reason: String,
    },
    /// The value cannot be a secret.
    #[error("`{reference}` holds no usable secret: {reason}")]
    Unusable {
        /// The reference.
        reference: String,
        /// Why.
        reason: &'static str,
    },
}

/// Resolves nothing: for host applications that have no secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Resolver for NoSecrets {
    fn resolve<'a>(&'a self, reference: &'a str, _: &'a Consumer) -> Resolving<'a> {
        let remedy = "give the runtime a resolver of secrets";
        Box::pin(async move { Err(ResolveError::NotServed { kind: kind(reference), remedy }) })
    }
}

/// Resolves variables, files and commands of the person who runs the host.
///
/// Whoever writes a configuration then reads files and runs programs as the host: right for a person's own
/// settings, wrong for a service whose tenants write configurations.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnMachine;

impl Resolver for OwnMachine {
    fn resolve<'a>(&'a self, reference: &'a str, _: &'a Consumer) -> Resolving<'a> {
        Box::pin(async move {
            let value = match reference.split_once(':') {
                Some(("env", name)) => variable(reference, name)?,
                Some(("file", path)) => file(reference, Path::new(path)).await?,
                Some(("command", line)) => command(reference, line).await?,
                _ => {
                    let remedy = "write `env:NAME`, `file:/PATH` or `command:PROGRAM ARGUMENTS`";
                    return Err(ResolveError::NotServed { kind: kind(reference), remedy });
                }
            };
            usable(reference, value)
        })
    }
}

fn variable(reference: &str, name: &str) -> Result<String, ResolveError> {
    std::env::var(name).map_err(|error| unreadable(reference, &error))
}

async fn file(reference: &str, path: &Path) -> Result<String, ResolveError> {
    if !path.is_absolute() {
        return Err(unreadable(reference, &"the path has to be absolute"));
    }
    let metadata = tokio::fs::metadata(path).await.map_err(|error| unreadable(reference, &error))?;
    if !metadata.is_file() {
        return Err(unreadable(reference, &"it is no regular file"));
    }
    let file = tokio::fs::File::open(path).await.map_err(|error| unreadable(reference, &error))?;
    text(reference, file).await
}

/// Runs a program without a shell. What it says on standard error goes to the person, not into our errors.
async fn command(reference: &str, line: &str) -> Result<String, ResolveError> {
    let mut words = line.split_ascii_whitespace();
    let Some(program) = words.next() else { return Err(unreadable(reference, &"it names no program")) };
    let mut child = tokio::process::Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| unreadable(reference, &error))?;
    let Some(output) = child.stdout.take() else { return Err(unreadable(reference, &"it has no output")) };
    let run = async {
        let value = text(reference, output).await?;
        let status = child.wait().await.map_err(|error| unreadable(reference, &error))?;
        match status.success() {
            true => Ok(value),
            false => Err(unreadable(reference, &status)),
        }
    };
    match tokio::time::timeout(COMMAND_TIME, run).await {
        Ok(done) => done,
        Err(_) => Err(unreadable(reference, &format!("no answer within {} s", COMMAND_TIME.as_secs()))),
    }
}

async fn text(reference: &str, from: impl tokio::io::AsyncRead + Unpin) -> Result<String, ResolveError> {
    let mut bytes = Vec::new();
    let read = from.take(VALUE_MAX + 1).read_to_end(&mut bytes).await;
    read.map_err(|error| unreadable(reference, &error))?;
    if bytes.len() as u64 > VALUE_MAX {
        return Err(ResolveError::Unusable {
            reference: reference.into(),
            reason: "it has more than 64 KiB",
        });
    }
    String::from_utf8(bytes)
        .map_err(|_| ResolveError::Unusable { reference: reference.into(), reason: "it is not UTF-8" })
}

/// A value without the line end that editors and tools add.
fn usable(reference: &str, value: String) -> Result<SecretString, ResolveError> {
    let bare = value.strip_suffix('\n').unwrap_or(&value);
    let bare = bare.strip_suffix('\r').unwrap_or(bare);
    let reason = match bare.len() {
        0 => "it is empty",
        length if length < super::scrub::SHORTEST => "it is too short to be kept out of logs",
        _ => return Ok(SecretString::from(bare)),
    };
    Err(ResolveError::Unusable { reference: reference.into(), reason })
}

fn unreadable(reference: &str, reason: &dyn std::fmt::Display) -> ResolveError {
    ResolveError::Unreadable { reference: reference.into(), reason: reason.to_string() }
}

fn kind(reference: &str) -> String {
    match reference.split_once(':') {
        _ if is_uuid(reference) => "id".into(),
        Some((scheme, _)) => scheme.into(),
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    async fn resolved(reference: &str) -> Result<String, String> {
        let consumer =
            Consumer { tenant: "t".into(), environment: "e".into(), run: None, purpose: Purpose::Use };
        let value = OwnMachine.resolve(reference, &consumer).await;
        value.map(|value| value.expose_secret().to_owned()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_value_comes_from_where_the_reference_says() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "file-value\r\n").unwrap();
        let file = format!("file:{}", path.display());
        assert_eq!(resolved(&file).await.unwrap(), "file-value");
        assert_eq!(resolved("command:printf %s command-value").await.unwrap(), "command-value");
        assert_eq!(resolved("env:PATH").await.unwrap(), std::env::var("PATH").unwrap());
    }

    #[tokio::test]
    async fn what_is_no_secret_is_refused_without_showing_it() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            format!("file:{}", path.display())
        };
        let cases = [
            (place("empty", b"\n"), "it is empty"),
            (place("short", b"abc"), "too short to be kept out of logs"),
            (place("long", &vec![b'x'; 65_537]), "more than 64 KiB"),
            (place("binary", b"\xff\xfe\xfd\xfc"), "it is not UTF-8"),
            (format!("file:{}", directory.path().display()), "no regular file"),
            ("file:relative".into(), "has to be absolute"),
            ("file:/no/such/file".into(), "cannot be read"),
            ("env:LEASEHOLD_NO_SUCH_VARIABLE".into(), "cannot be read"),
            ("command:false".into(), "exit status: 1"),
            ("command:/no/such/program".into(), "cannot be read"),
            ("command: ".into(), "names no program"),
            ("3f0c2a52-1111-4222-8333-444455556666".into(), "kind `id` are not resolved here"),
        ];
        for (reference, expected) in cases {
            let error = resolved(&reference).await.unwrap_err();
            assert!(error.contains(expected), "{reference}: {error}");
        }
    }
}
