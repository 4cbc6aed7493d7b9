//! All weights of the model on a device.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use gr00t_host::{ModelConfig, Weights};
use tt_ops::Device;

use crate::adapter::Adapter;
use crate::denoise::{self, ActionHead, DitStep, Embodiment, StepConstants, timesteps};
use crate::dtype_policy::{DtypePolicy, Part};
use crate::error::{ModelError, Result};
use crate::llm::{LanguageModel, TokenEmbedding};
use crate::pipeline::Conditioning;
use crate::vision::VisionModel;
use crate::weights::{Ledger, Loader, Precise};

/// Constants of the time buckets, computed when a number of steps is first asked for.
#[derive(Debug)]
struct Constants<D: Device> {
    /// By number of steps.
    dit: BTreeMap<usize, Vec<Arc<DitStep<D>>>>,
    /// By slot and number of steps.
    tau: BTreeMap<(usize, usize), Vec<Precise<D>>>,
}

/// The network's parts, and what is loaded on demand: embodiments, constants of time buckets.
#[derive(Debug)]
pub(crate) struct Network<D: Device> {
    pub(crate) device: D,
    pub(crate) config: ModelConfig,
    pub(crate) policy: DtypePolicy,
    pub(crate) embedding: TokenEmbedding,
    pub(crate) vision: VisionModel<D>,
    pub(crate) llm: LanguageModel<D>,
    pub(crate) adapter: Adapter<D>,
    pub(crate) head: ActionHead<D>,
    pub(crate) ledger: Ledger,
    weights: Weights,
    embodiments: RwLock<BTreeMap<usize, Arc<Embodiment<D>>>>,
    constants: Mutex<Constants<D>>,
}

impl<D: Device> Network<D> {
    /// Loads everything but embodiments.
    pub(crate) fn new(
        device: D,
        config: ModelConfig,
        weights: Weights,
        policy: DtypePolicy,
        ledger: Ledger,
    ) -> Result<Self> {
        let at = |part| Loader::new(&device, &weights, policy, part, &ledger);
        let eagle = |part| at(part).pp("backbone").pp("eagle_model");
        let head = &config.gr00t.action_head_cfg;
        let language_model = weights.pp("backbone.eagle_model.language_model.model");
        let embedding = TokenEmbedding::new(&config.eagle.text_config, language_model.pp("embed_tokens"))?;
        let vision = VisionModel::new(&config.eagle, &eagle(Part::Vision))?;
        let llm = LanguageModel::new(&config, &eagle(Part::Llm).pp("language_model").pp("model"))?;
        let adapter = Adapter::new(head, &at(Part::Adapter).pp("action_head"))?;
        let action_head = ActionHead::new(head, &at(Part::Denoise).pp("action_head"))?;
        Ok(Self {
            device,
            policy,
            embedding,
            vision,
            llm,
            adapter,
            head: action_head,
            config,
            ledger,
            weights,
            embodiments: RwLock::default(),
            constants: Mutex::new(Constants { dit: BTreeMap::new(), tau: BTreeMap::new() }),
        })
    }

    fn action_head(&self) -> Loader<'_, D> {
        Loader::new(&self.device, &self.weights, self.policy, Part::Denoise, &self.ledger).pp("action_head")
    }

    /// Loads slot `slot` of the category-specific weights, unless it is loaded.
    pub(crate) fn load_embodiment(&self, slot: usize) -> Result<()> {
        let head = &self.config.gr00t.action_head_cfg;
        if slot >= head.max_num_embodiments {
            let wanted = format!("less than {}", head.max_num_embodiments);
            return Err(ModelError::Option { option: "embodiment", got: slot.to_string(), wanted });
        }
        let mut loaded = self.embodiments.write().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Vacant(entry) = loaded.entry(slot) {
            entry.insert(Arc::new(Embodiment::new(head, slot, &self.action_head())?));
        }
        Ok(())
    }

    /// Slots that are loaded.
    pub(crate) fn embodiments(&self) -> Vec<usize> {
        self.embodiments.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// The weights of slot `slot` and the constants of `steps` steps, which are computed when first asked for.
    pub(crate) fn conditioning(&self, slot: usize, steps: usize) -> Result<Conditioning<D>> {
        let loaded = self.embodiments.read().unwrap_or_else(PoisonError::into_inner);
        let Some(embodiment) = loaded.get(&slot).cloned() else {
            return Err(ModelError::Embodiment { got: slot, loaded: loaded.keys().copied().collect() });
        };
        drop(loaded);
        let head = &self.config.gr00t.action_head_cfg;
        let (times, weights) = (timesteps(steps, head.num_timestep_buckets), self.action_head());
        // a panic elsewhere leaves constants that are still right
        let mut constants = self.constants.lock().unwrap_or_else(PoisonError::into_inner);
        let dit = match constants.dit.entry(steps) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) => entry.insert(denoise::dit_steps(head, &times, &weights)?).clone(),
        };
        let tau = match constants.tau.entry((slot, steps)) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) => entry.insert(denoise::taus(head, slot, &times, &weights)?).clone(),
        };
        let steps = dit.into_iter().zip(tau).map(|(dit, tau)| StepConstants { dit, tau }).collect();
        Ok(Conditioning { embodiment, steps })
    }
}
