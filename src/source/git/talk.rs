//! The Git protocol over any transport: the tip of one branch, and one commit by its sha.
//!
//! Never merges, never pulls, never follows a ref to an object: what is fetched is always a full sha.

use std::num::NonZeroU32;
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::protocol::fetch::negotiate::{Action, Round, one_round};
use gix::protocol::fetch::{Arguments, Context, Negotiate, Options, Response, Shallow, Tags};
use gix::protocol::handshake::Ref;
use gix::protocol::ls_refs::RefPrefixes;
use gix::protocol::transport::client::blocking_io::Transport;
use gix::protocol::transport::{Protocol, Service};
use gix::protocol::{Handshake, LsRefsCommand};
use gix::utils::progress::Discard;

use super::abort::Abort;
use super::fault::{Fault, short};
use super::wire::Link;

/// How we name ourselves to servers.
const AGENT: &str = concat!("trueup/", env!("CARGO_PKG_VERSION"));

/// An open conversation with a remote.
pub(super) struct Talk {
    /// Where the bytes go.
    pub(super) transport: Box<dyn Transport + Send>,
    /// What the server can do.
    pub(super) handshake: Handshake,
    /// What the connection itself met.
    pub(super) link: Arc<Link>,
}

/// One commit to fetch, and what the other side may leave out.
pub(super) struct Want<'a> {
    /// The commit.
    pub(super) id: ObjectId,
    /// Commits whose trees the mirror has whole.
    pub(super) haves: &'a [ObjectId],
    /// How many commits of history.
    pub(super) depth: NonZeroU32,
    /// Whether commits alone are enough, if the server can filter.
    pub(super) is_history: bool,
}

fn agent() -> gix::protocol::command::Feature {
    ("agent", Some(AGENT.to_owned()))
}

impl Talk {
    /// Greets the server.
    ///
    /// # Errors
    /// [`Fault::Remote`].
    pub(super) fn open(transport: Box<dyn Transport + Send>, link: Arc<Link>) -> Result<Self, Fault> {
        let mut transport = transport;
        let handshake =
            gix::protocol::handshake(&mut transport, Service::UploadPack, |_| Ok(None), Vec::new(), &mut Discard)
                .map_err(|error| link.fault().unwrap_or_else(|| Fault::remote(short(&format!("{error:?}")))))?;
        Ok(Self { transport, handshake, link })
    }

    /// The tip of the branch with exactly this full name; nothing if the server has no such branch.
    ///
    /// # Errors
    /// [`Fault::Remote`] whenever the server did not answer in full.
    pub(super) fn tip(&mut self, full_name: &str) -> Result<Option<ObjectId>, Fault> {
        let listed;
        let refs = match &self.handshake.refs {
            Some(refs) => refs,
            None => {
                let mut prefixes = RefPrefixes::new();
                prefixes.extend([BString::from(full_name)]);
                let command = LsRefsCommand::new(Some(prefixes), &self.handshake.capabilities, agent());
                listed = command.invoke_blocking(&mut self.transport, &mut Discard, false).map_err(|error| {
                    self.link.fault().unwrap_or_else(|| Fault::remote(short(&format!("{error:?}"))))
                })?;
                &listed
            }
        };
        Ok(refs.iter().find_map(|found| named(found, full_name)))
    }

    /// Fetches one commit into `mirror`. The caller checks what arrived.
    ///
    /// # Errors
    /// [`Fault::Remote`] from the other side, [`Fault::Mirror`] from ours.
    pub(super) fn receive(&mut self, mirror: &gix::Repository, want: &Want<'_>, abort: &Abort) -> Result<(), Fault> {
        let shallow = Shallow::DepthAtRemote(want.depth);
        let options = Options {
            shallow_file: mirror.git_dir().join("shallow"),
            shallow: &shallow,
            tags: Tags::None,
            reject_shallow_remote: false,
        };
        let context = Context {
            handshake: &mut self.handshake,
            transport: &mut self.transport,
            user_agent: agent(),
            trace_packetlines: false,
        };
        let mut negotiate = Once { want, has_sent: false };
        let result = gix::protocol::fetch(
            &mut negotiate,
            |reader, progress, stop| store_pack(mirror, reader, progress, stop),
            Discard,
            abort.flag(),
            context,
            options,
        );
        abort.check()?;
        match result {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Fault::remote("the server sent nothing")),
            Err(error) => Err(self.failed(want.id, &error)),
        }
    }

    /// Tells apart what the server said from what our side met.
    fn failed(&self, id: ObjectId, error: &gix::Error) -> Fault {
        if let Some(fault) = self.link.fault() {
            return fault;
        }
        let text = short(&format!("{error:?}"));
        let is_refused = text.contains("not our ref");
        if is_refused && self.is_v2() {
            return Fault::remote("the commit is no longer in the remote");
        }
        if is_refused {
            return Fault::refused(
                format!("the server gives only tips of branches, and {id} is none"),
                "let it speak protocol version 2 (`AcceptEnv GIT_PROTOCOL` in sshd_config)",
            );
        }
        // Everything that gix words so comes from an ERR packet or from what could not be read of an answer.
        let is_remote = ["upload-pack", "smart", "Could not decode server reply", "ls-refs"];
        if is_remote.iter().any(|mark| text.contains(mark)) { Fault::remote(text) } else { Fault::Mirror(text) }
    }

    /// Whether the server can be asked for any commit that it has.
    pub(super) fn is_v2(&self) -> bool {
        matches!(self.handshake.server_protocol_version, Protocol::V2)
    }
}

fn named(found: &Ref, full_name: &str) -> Option<ObjectId> {
    match found {
        Ref::Peeled { full_ref_name, object, .. }
        | Ref::Direct { full_ref_name, object }
        | Ref::Symbolic { full_ref_name, object, .. } => {
            (full_ref_name.as_bytes() == full_name.as_bytes()).then_some(*object)
        }
        Ref::Unborn { .. } => None,
    }
}

fn store_pack(
    mirror: &gix::Repository,
    reader: &mut dyn std::io::BufRead,
    progress: &mut dyn gix::DynNestedProgress,
    stop: &std::sync::atomic::AtomicBool,
) -> gix::Result<bool> {
    let written = gix::odb::pack::Bundle::write_to_directory(
        reader,
        Some(&mirror.objects.store_ref().path().join("pack")),
        progress,
        stop,
        Some(mirror.objects.clone()),
        mirror.object_hash(),
        gix::odb::pack::bundle::write::Options {
            thread_limit: Some(2),
            alloc_limit_bytes: Some(super::OBJECT_LIMIT_BYTES),
            ..Default::default()
        },
    )?;
    if let Some(keep) = written.keep_path {
        std::fs::remove_file(keep).map_err(gix::Error::from_error)?;
    }
    Ok(true)
}

/// A negotiation of one round: this is wanted, that is here, done.
struct Once<'a> {
    want: &'a Want<'a>,
    has_sent: bool,
}

impl Negotiate for Once<'_> {
    fn mark_complete_and_common_ref(&mut self) -> gix::Result<Action> {
        Ok(Action::MustNegotiate { remote_ref_target_known: Vec::new() })
    }

    fn add_wants(&mut self, arguments: &mut Arguments, _known: &[bool]) -> bool {
        arguments.want(self.want.id);
        if self.want.is_history && arguments.can_use_filter() {
            arguments.filter("tree:0");
        }
        true
    }

    fn one_round(
        &mut self,
        _state: &mut one_round::State,
        arguments: &mut Arguments,
        _previous: Option<&Response>,
    ) -> gix::Result<(Round, bool)> {
        if !self.has_sent {
            self.want.haves.iter().for_each(|id| arguments.have(id));
            self.has_sent = true;
        }
        Ok((
            Round {
                haves_sent: self.want.haves.len(),
                in_vain: 0,
                haves_to_send: 0,
                previous_response_had_at_least_one_in_common: false,
            },
            true,
        ))
    }
}
