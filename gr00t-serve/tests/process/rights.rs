//! As launchers run it: a user without an entry in passwd, a root that is read only, no HOME.

use std::process::Command;

use crate::server::{MINI, PROGRAM, Server, command, get};

/// A mount namespace whose root is read only, and in it a user that no file knows.
const SHUT_IN: &str = "mount --bind / / && mount -o remount,bind,ro / && \
                       exec setpriv --reuid 54321 --regid 54321 --clear-groups \"$@\"";

fn shut_in(arguments: &[&str]) -> Command {
    let mut unshare = command("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", SHUT_IN, "sh"]).args(arguments);
    unshare
}

#[test]
fn an_unknown_user_with_a_read_only_root_and_no_home_serves() {
    if !shut_in(&["true"]).output().is_ok_and(|output| output.status.success()) {
        println!("skipped: unshare, mount or setpriv is not permitted here");
        return;
    }
    assert!(!shut_in(&["touch", "/tmp/gr00t-serve-read-only"]).output().unwrap().status.success());
    if !shut_in(&[PROGRAM, "--version"]).output().unwrap().status.success() {
        println!("skipped: other users may not run {PROGRAM}");
        return;
    }
    let mut run = shut_in(&[PROGRAM]);
    // what the launcher sets: a folder that cannot be written here costs a warning
    run.args(MINI).args(["--port", "0"]).env("TT_DIT_CACHE_DIR", "/weight-cache");
    let mut server = Server::of(run);
    let address = server.ready();
    assert_eq!(get(address, "/v1/models").0, 200);
    let (rest, status) = server.stop();
    assert!(status.success() && rest.contains("Closing device"), "{status}: {rest}");
}
