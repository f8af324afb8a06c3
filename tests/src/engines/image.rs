//! An image made on the spot: busybox, two users, and nothing else.

use super::{Engine, call};
use std::process::Command;

/// The image that every engine of the tests has.
pub const IMAGE: &str = "leasehold-test:1";

/// Puts it into an engine.
pub(super) fn import(engine: &Engine) -> Result<(), String> {
    let (name, tag) = IMAGE.split_once(':').unwrap_or((IMAGE, "latest"));
    let tar = archive().map_err(|error| error.to_string())?;
    let path = format!("/v1.41/images/create?fromSrc=-&repo={name}&tag={tag}");
    let answer =
        call(&engine.socket(), "POST", &path, "application/x-tar", &tar).map_err(|e| e.to_string())?;
    let said = answer.text();
    let id = said.lines().rev().find_map(|line| {
        serde_json::from_str::<serde_json::Value>(line).ok()?["status"].as_str().map(str::to_owned)
    });
    let id = id.filter(|_| answer.status == 200).ok_or_else(|| format!("the image is not taken: {said}"))?;
    // Podman takes the image without its name.
    let path = format!("/v1.41/images/{id}/tag?repo={name}&tag={tag}");
    let tagged = call(&engine.socket(), "POST", &path, "", &[]).map_err(|error| error.to_string())?;
    match tagged.status {
        201 => Ok(()),
        _ => Err(format!("the image is not named: {}", tagged.text())),
    }
}

fn archive() -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut put = |path: &str, kind: tar::EntryType, mode: u32, content: &[u8], target: Option<&str>| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_uid(0);
        header.set_gid(0);
        match target {
            Some(target) => archive.append_link(&mut header, path, target),
            None => archive.append_data(&mut header, path, content),
        }
    };
    let directory = tar::EntryType::Directory;
    for path in ["bin", "etc", "proc", "sys", "dev", "root", "var", "usr", "usr/bin", "run"] {
        put(path, directory, 0o755, b"", None)?;
    }
    put("tmp", directory, 0o1777, b"", None)?;
    put("bin/busybox", tar::EntryType::Regular, 0o755, &std::fs::read("/bin/busybox")?, None)?;
    let listed = Command::new("/bin/busybox").arg("--list").output()?.stdout;
    for applet in String::from_utf8_lossy(&listed).lines().filter(|applet| *applet != "busybox") {
        put(&format!("bin/{applet}"), tar::EntryType::Symlink, 0o777, b"", Some("busybox"))?;
    }
    let users = "root:x:0:0:root:/root:/bin/sh\nperson:x:1000:1000:person:/tmp:/bin/sh\n";
    put("etc/passwd", tar::EntryType::Regular, 0o644, users.as_bytes(), None)?;
    put("etc/group", tar::EntryType::Regular, 0o644, b"root:x:0:\nperson:x:1000:\n", None)?;
    archive.into_inner()
}
