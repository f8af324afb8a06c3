//! Files in and out.

use crate::common::sandbox::ran;
use crate::shop::Shop;
use leasehold_tests::engines::IMAGE;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

pub(crate) fn the_folder_goes_in_the_command_runs_and_what_it_changed_comes_back(shop: &Shop<'_>) {
    let project = shop.place.path().join("project");
    fs::write(project.join("kept.txt"), "kept").unwrap();
    fs::write(project.join("changed.txt"), "before").unwrap();
    fs::write(project.join("deleted.txt"), "gone soon").unwrap();
    fs::create_dir_all(project.join("deep/er")).unwrap();
    fs::write(project.join("deep/er/run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(project.join("deep/er/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../kept.txt", project.join("deep/link")).unwrap();
    let long = format!("{}/{}", "long-".repeat(20), "name-".repeat(30));
    fs::create_dir_all(project.join(&long).parent().unwrap()).unwrap();
    fs::write(project.join(&long), "long").unwrap();
    let script = "deep/er/run.sh; cat deep/link; echo after > changed.txt; rm deleted.txt; mkdir new; \
                  echo one > new/file; ln new/file new/same; ln -s file new/link; chmod 700 new/file";
    // As a person types it.
    let (code, output, error) =
        ran(&shop.place, &["run", "--provider", "docker", "--image", IMAGE, "--", "sh", "-c", script]);
    assert_eq!((code, output.as_str(), error.as_str()), (0, "ran\nkept", ""));
    let read = |name: &str| fs::read_to_string(project.join(name)).unwrap();
    assert_eq!(read("changed.txt"), "after\n");
    assert_eq!(
        (read("new/file"), read("new/same"), read("new/link")),
        ("one\n".into(), "one\n".into(), "one\n".into())
    );
    assert_eq!(fs::metadata(project.join("new/file")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(read(&long), "long");
    assert!(!project.join("deleted.txt").exists());
    assert_eq!(shop.engine.containers("docker"), Vec::<String>::new());
}

pub(crate) fn a_file_and_a_folder_are_copied_in_and_out_of_places_that_were_not_there(shop: &Shop<'_>) {
    let project = shop.place.path().join("project");
    fs::create_dir_all(project.join("folder/sub")).unwrap();
    fs::write(project.join("folder/sub/a"), vec![7; 3_000_000]).unwrap();
    fs::write(project.join("one"), "one file").unwrap();
    fs::write(project.join("empty"), "").unwrap();
    let lease = shop.acquired();
    let at = |path: &str| format!("{lease}:{path}");
    for (from, to) in [("one", "/srv/there/not/one"), ("empty", "/srv/empty"), ("folder", "/srv/folder")] {
        assert_eq!(shop.tell(&["cp", from, &at(to)]), (0, String::new(), String::new()), "{from}");
    }
    let listed =
        shop.exec(&lease, &["sh", "-c", "cat /srv/there/not/one; wc -c </srv/folder/sub/a; ls -A /srv"]);
    assert_eq!(listed, (0, "one file3000000\nempty\nfolder\nthere\n".into(), String::new()));
    for (from, to) in [("/srv/there/not/one", "back-one"), ("/srv/folder", "back-folder")] {
        assert_eq!(shop.tell(&["cp", &at(from), to]), (0, String::new(), String::new()), "{from}");
    }
    assert_eq!(fs::read(project.join("back-one")).unwrap(), b"one file");
    assert_eq!(fs::read(project.join("back-folder/sub/a")).unwrap(), vec![7; 3_000_000]);
    let (code, _, error) = shop.tell(&["cp", &at("/srv/nothing"), "back"]);
    assert!(code == 1 && error.contains("/srv/nothing"), "{code} {error}");
    shop.released(&lease);
}

pub(crate) fn bytes_of_files_pass_the_provider_by(shop: &Shop<'_>) {
    let project = shop.place.path().join("project");
    // Many times the memory a provider may have.
    let file = fs::File::create(project.join("large")).unwrap();
    file.set_len(200 << 20).unwrap();
    let lease = shop.acquired();
    assert_eq!(
        shop.tell(&["cp", "large", &format!("{lease}:/srv/large")]),
        (0, String::new(), String::new())
    );
    assert_eq!(shop.exec(&lease, &["sh", "-c", "wc -c </srv/large"]).1, "209715200\n");
    assert_eq!(shop.tell(&["cp", &format!("{lease}:/srv/large"), "back"]).0, 0);
    assert_eq!(fs::metadata(project.join("back")).unwrap().len(), 200 << 20);
    let (code, shown, _) = shop.tell(&["lease", "show", &lease, "--json"]);
    assert_eq!(code, 0);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let peaks = peaks(&shown);
    assert!(!peaks.is_empty(), "{shown}");
    assert!(peaks.iter().all(|peak| *peak < 8 << 20), "{peaks:?}");
    shop.released(&lease);
}

/// The most memory that any call of the history used, wherever a bill stands in it.
fn peaks(value: &serde_json::Value) -> Vec<u64> {
    match value {
        serde_json::Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value.as_u64() {
                Some(number) if key.to_ascii_lowercase().contains("memory") => vec![number],
                _ => peaks(value),
            })
            .collect(),
        serde_json::Value::Array(all) => all.iter().flat_map(peaks).collect(),
        serde_json::Value::String(text) => serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .filter(|inner| inner.is_object())
            .map_or_else(Vec::new, |inner| peaks(&inner)),
        _ => Vec::new(),
    }
}

pub(crate) fn an_ordinary_user_owns_its_workspace(shop: &Shop<'_>) {
    shop.configured(", user = \"person\"");
    let project = shop.place.path().join("project");
    fs::write(project.join("given"), "given").unwrap();
    let settings = shop.place.path().join("leasehold.toml");
    let script =
        "id -u; echo more >> given; echo mine > new; mkdir folder; touch /root/x 2>/dev/null || echo refused";
    let arguments = ["run", "--settings", settings.to_str().unwrap(), "--environment", &shop.environment];
    let ended = ran(&shop.place, &[&arguments[..], &["--", "sh", "-c", script]].concat());
    assert_eq!(ended, (0, "1000\nrefused\n".into(), String::new()));
    assert_eq!(fs::read_to_string(project.join("given")).unwrap(), "givenmore\n");
    assert_eq!(fs::read_to_string(project.join("new")).unwrap(), "mine\n");
}
