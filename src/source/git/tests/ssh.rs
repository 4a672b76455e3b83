//! `ssh://` against a real `sshd` on a loopback port, with keys made for the test.
