//! Embodiment tags and the projector slot that each selects; source: NVIDIA's `EMBODIMENT_TAG_MAPPING`
//! (GR00T N1.5, `gr00t/data/embodiment_tags.py`).

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// Name under which older checkpoints keep the Agibot statistics.
const AGIBOT_ALIAS: &str = "agibot";

/// Which robot a checkpoint's statistics and projector weights are for.
///
/// The model holds one set of state and action projectors per slot; the tag picks the slot. A tag that this list doesn't
/// have is kept by name and needs an explicit slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EmbodimentTag {
    /// Fourier GR-1, absolute joint space.
    Gr1,
    /// Open-X DROID single arm, delta end-effector space.
    OxeDroid,
    /// AgiBot Genie-1 with grippers, absolute joint space.
    AgibotGenie1,
    /// Whatever a fine-tune was made for; the base checkpoint's projector of this slot is untrained.
    NewEmbodiment,
    /// A tag of someone's own.
    Other(String),
}

impl EmbodimentTag {
    /// The tags that N1.5 maps to slots.
    pub const KNOWN: [Self; 4] = [Self::Gr1, Self::OxeDroid, Self::AgibotGenie1, Self::NewEmbodiment];

    /// The tag's name in metadata files.
    pub fn name(&self) -> &str {
        match self {
            Self::Gr1 => "gr1",
            Self::OxeDroid => "oxe_droid",
            Self::AgibotGenie1 => "agibot_genie1",
            Self::NewEmbodiment => "new_embodiment",
            Self::Other(name) => name,
        }
    }

    /// The projector slot that N1.5 maps the tag to, if it does.
    pub fn slot(&self) -> Option<usize> {
        match self {
            Self::Gr1 => Some(24),
            Self::OxeDroid => Some(17),
            Self::AgibotGenie1 => Some(26),
            Self::NewEmbodiment => Some(31),
            Self::Other(_) => None,
        }
    }

    /// The projector slot to use: `explicit` if given, else the mapped one, below `num_slots`.
    ///
    /// # Errors
    /// If the tag has no mapped slot and none is given, or the slot is not below `num_slots` (32 in N1.5).
    pub fn resolve_slot(&self, explicit: Option<usize>, num_slots: usize) -> Result<usize> {
        let slot = explicit.or_else(|| self.slot()).ok_or_else(|| {
            Error::Metadata(format!(
                "embodiment {self} has no known projector slot; give embodiment_id, 0 to {}",
                num_slots.saturating_sub(1)
            ))
        })?;
        if slot < num_slots {
            Ok(slot)
        } else {
            Err(Error::Metadata(format!(
                "embodiment {self}: projector slot {slot}, the model has {num_slots}"
            )))
        }
    }
}

impl FromStr for EmbodimentTag {
    type Err = Infallible;

    /// Every name is a tag; `agibot` is read as `agibot_genie1`.
    fn from_str(name: &str) -> Result<Self, Infallible> {
        if name == AGIBOT_ALIAS {
            return Ok(Self::AgibotGenie1);
        }
        Ok(Self::KNOWN
            .into_iter()
            .find(|tag| tag.name() == name)
            .unwrap_or_else(|| Self::Other(name.to_owned())))
    }
}

impl fmt::Display for EmbodimentTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether `name` is the old spelling of `agibot_genie1`.
pub(super) fn is_old_agibot_name(name: &str) -> bool {
    name == AGIBOT_ALIAS
}
