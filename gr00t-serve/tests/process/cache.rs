//! What the first start keeps, the second one reads; damage is noticed.

use std::path::{Path, PathBuf};

use crate::server::Server;

/// The log of a boot with its cache in `folder`.
fn boot(folder: &Path, flags: &[&str]) -> String {
    let mut flags = flags.to_vec();
    flags.extend(["--cache-dir", folder.to_str().unwrap()]);
    let mut server = Server::start(&flags);
    server.ready();
    server.log.join("\n")
}

fn reference_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("reference")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_second_start_packs_nothing_and_does_not_run_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let cold = boot(folder.path(), &[]);
    assert!(cold.contains("cache path cold)") && cold.contains("Reference actions: computed"), "{cold}");
    let warm = boot(folder.path(), &[]);
    assert!(warm.contains("cache path warm)") && warm.contains(" 0 packed"), "{warm}");
    assert!(warm.contains("Reference actions: from the cache") && !warm.contains("computed"), "{warm}");
    let fidelity =
        |log: &str| log.split("Warm-up fidelity").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(fidelity(&cold), fidelity(&warm));
}

#[test]
fn a_damaged_reference_file_is_noticed_and_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    boot(folder.path(), &[]);
    let [file] = &reference_files(folder.path())[..] else { panic!("one reference file") };
    let good = std::fs::read(file).unwrap();
    let mut flipped = good.clone();
    flipped[5] ^= 1;
    for bad in [flipped, good[..good.len() - 1].to_vec(), Vec::new()] {
        std::fs::write(file, bad).unwrap();
        let log = boot(folder.path(), &[]);
        assert!(log.contains("damaged, the reference runs again") && log.contains("computed"), "{log}");
        assert_eq!(std::fs::read(file).unwrap(), good);
    }
}

#[test]
fn other_weights_or_steps_have_a_reference_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    boot(folder.path(), &[]);
    assert!(boot(folder.path(), &["--weights", "synthetic:1"]).contains("computed"));
    assert!(boot(folder.path(), &["--denoising-steps", "2"]).contains("computed"));
    assert_eq!(reference_files(folder.path()).len(), 3);
}

#[test]
fn a_folder_that_cannot_be_written_costs_time_and_no_more() {
    // a file where the folder should be, which not even root can write below
    let file = tempfile::NamedTempFile::new().unwrap();
    let log = boot(file.path(), &[]);
    assert!(log.contains("cache path cold)") && log.contains("not written: "), "{log}");
}
