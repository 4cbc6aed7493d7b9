//! Recording: the list of planned kernels that a capture makes, and how it becomes a plan.

use crate::plan::elide::elide_copies;
use crate::plan::heap::{Heap, HeapId};
use crate::plan::kernel::Kernel;
use crate::plan::operand::{BufferId, Operand};
use crate::plan::placement::{Lifetime, place};
use crate::plan::run::Plan;

/// One kernel with its operands.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is computed.
    pub kernel: Kernel,
    /// What it reads, in the order that the kernel states.
    pub inputs: Vec<Operand>,
    /// What it writes.
    pub output: Operand,
    /// The input whose memory the output takes over, element by element.
    pub in_place: Option<usize>,
}

impl Call {
    /// A kernel that writes into memory of its own.
    #[must_use]
    pub fn new(kernel: Kernel, inputs: Vec<Operand>, output: Operand) -> Self {
        Self { kernel, inputs, output, in_place: None }
    }
}

/// The kernels of one op. All of them write the same buffer, and together the whole of `output`.
#[derive(Debug, Clone)]
pub struct Step {
    /// The op's name, for messages.
    pub op: &'static str,
    /// Its kernels, in order; none if the op only makes views.
    pub calls: Vec<Call>,
    /// What they write together.
    pub output: Option<Operand>,
    /// Buffers that no later step reads; filled in when the plan is built.
    pub(super) dead: Vec<Operand>,
}

impl Step {
    /// An op that runs kernels.
    #[must_use]
    pub fn new(op: &'static str, calls: Vec<Call>, output: Operand) -> Self {
        Self { op, calls, output: Some(output), dead: Vec::new() }
    }

    /// An op that runs nothing.
    #[must_use]
    pub fn view(op: &'static str) -> Self {
        Self { op, calls: Vec::new(), output: None, dead: Vec::new() }
    }
}

/// What a capture recorded so far.
#[derive(Debug, Default)]
pub struct Recording {
    steps: Vec<Step>,
    bytes: Vec<usize>,
}

/// What a plan may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions {
    /// Poison memory, look at every result, and let no two buffers share memory in place.
    pub checked: bool,
}

impl Recording {
    /// An empty recording.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of `bytes` bytes that will get its place when the plan is built.
    pub fn allocate(&mut self, bytes: usize) -> u32 {
        self.bytes.push(bytes);
        (self.bytes.len() - 1) as u32
    }

    /// Adds an op.
    pub fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Number of ops.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Places every buffer: those that `kept` names get heap buffers of their own, which are returned beside the
    /// plan; all others share the heap's arena.
    #[must_use]
    pub fn finish(mut self, kept: &[u32], options: PlanOptions, heap: &mut Heap) -> (Plan, Vec<HeapId>) {
        let mut places: Vec<Option<BufferId>> = vec![None; self.bytes.len()];
        let mut own = Vec::with_capacity(kept.len());
        for &index in kept {
            let id = heap.allocate(self.bytes.get(index as usize).copied().unwrap_or(0));
            own.push(id);
            if let Some(place) = places.get_mut(index as usize) {
                *place = Some(BufferId::Heap(id));
            }
        }
        if !options.checked {
            elide_copies(&mut self.steps, &|index| kept.contains(&index));
        }
        let mut lives = self.lifetimes();
        let roots = if options.checked {
            (0..lives.len()).collect()
        } else {
            self.share_in_place(&places, &mut lives)
        };
        let arena: Vec<usize> = (0..lives.len())
            .filter(|&i| places[i].is_none() && roots[i] == i && lives[i].is_some())
            .collect();
        let lifetimes: Vec<Lifetime> = arena.iter().filter_map(|&i| lives[i]).collect();
        let (starts, arena_bytes) = place(&lifetimes);
        for (&i, start) in arena.iter().zip(starts) {
            places[i] = Some(BufferId::Arena { start, len: self.bytes[i] });
        }
        for i in 0..places.len() {
            if places[i].is_none() {
                places[i] = places[roots[i]];
            }
        }
        if options.checked {
            self.mark_dead(&lives, &places);
        }
        self.substitute(&places);
        heap.reserve_arena(arena_bytes);
        (Plan::new(self.steps, options, arena_bytes), own)
    }

    /// First and last step that touch each recorded buffer.
    fn lifetimes(&self) -> Vec<Option<Lifetime>> {
        let mut lives: Vec<Option<Lifetime>> = vec![None; self.bytes.len()];
        for (step, calls) in self.steps.iter().enumerate().map(|(i, s)| (i, &s.calls)) {
            for operand in calls.iter().flat_map(|c| c.inputs.iter().chain([&c.output])) {
                if let BufferId::Recorded(index) = operand.buffer {
                    let index = index as usize;
                    let life = lives[index].get_or_insert(Lifetime {
                        bytes: self.bytes[index],
                        first: step,
                        last: step,
                    });
                    life.last = step;
                }
            }
        }
        lives
    }

    /// Lets results take over the memory of an operand that dies with the call, where the kernel can work in place.
    /// Gives for each buffer the one whose memory it uses.
    fn share_in_place(&mut self, places: &[Option<BufferId>], lives: &mut [Option<Lifetime>]) -> Vec<usize> {
        let mut roots: Vec<usize> = (0..lives.len()).collect();
        for (at, step) in self.steps.iter_mut().enumerate() {
            let [call] = step.calls.as_mut_slice() else { continue };
            let BufferId::Recorded(out) = call.output.buffer else { continue };
            let Some(candidate) = call.kernel.in_place_input() else { continue };
            let Some(operand) = call.inputs.get(candidate).copied() else { continue };
            let BufferId::Recorded(source) = operand.buffer else { continue };
            let (out, source) = (out as usize, source as usize);
            let alone = call.inputs.iter().filter(|i| i.buffer == operand.buffer).count() == 1;
            let dies = lives[source].is_some_and(|l| l.last == at);
            let fits = operand.same_place(&call.output) && self.bytes[out] == self.bytes[source];
            let first = lives[out].is_some_and(|l| l.first == at);
            let free = places[out].is_none() && places[source].is_none() && out != source && first;
            if !(alone && dies && fits && free) {
                continue;
            }
            let root = roots[source];
            roots[out] = root;
            call.in_place = Some(candidate);
            if let (Some(life), Some(more)) = (lives[root], lives[out]) {
                lives[root] = Some(Lifetime { last: more.last.max(life.last), ..life });
            }
        }
        roots
    }

    fn mark_dead(&mut self, lives: &[Option<Lifetime>], places: &[Option<BufferId>]) {
        for (index, life) in lives.iter().enumerate() {
            let (Some(life), Some(BufferId::Arena { .. })) = (life, places[index]) else { continue };
            let writes = self.steps.get(life.first).map_or(&[][..], |step| &step.calls);
            let whole =
                writes.iter().map(|c| c.output).find(|o| o.buffer == BufferId::Recorded(index as u32));
            if let (Some(operand), Some(step)) = (whole, self.steps.get_mut(life.last)) {
                step.dead.push(operand);
            }
        }
    }

    fn substitute(&mut self, places: &[Option<BufferId>]) {
        let fix = |operand: &mut Operand| {
            if let BufferId::Recorded(index) = operand.buffer
                && let Some(Some(place)) = places.get(index as usize)
            {
                operand.buffer = *place;
            }
        };
        for step in &mut self.steps {
            for call in &mut step.calls {
                call.inputs.iter_mut().for_each(fix);
                fix(&mut call.output);
            }
            step.output.iter_mut().for_each(fix);
            step.dead.iter_mut().for_each(fix);
        }
    }
}
