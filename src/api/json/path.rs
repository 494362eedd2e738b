//! Where in a document a visitor is, as far as it cares.

/// Steps that are kept. What lies deeper is passed over.
const STEPS: usize = 12;

/// The containers a visitor stands in, by its own names for them. Those it does not name are passed over whole.
#[derive(Clone, Copy, Debug)]
pub struct Path<C> {
    steps: [C; STEPS],
    len: u8,
    /// Open containers nobody asked for.
    passed: u8,
}

impl<C: Copy> Path<C> {
    /// `root` stands for "outside the document".
    pub fn new(root: C) -> Path<C> {
        Path {
            steps: [root; STEPS],
            len: 0,
            passed: 0,
        }
    }

    pub fn reset(&mut self) {
        self.len = 0;
        self.passed = 0;
    }

    /// The container whose members come next; nothing within one that is passed over.
    pub fn here(&self) -> Option<C> {
        if self.passed > 0 {
            return None;
        }
        self.steps.get(usize::from(self.len)).copied()
    }

    /// A container opens: one that is named, or none we know.
    pub fn enter(&mut self, step: Option<C>) {
        match (step, self.steps.get_mut(usize::from(self.len) + 1)) {
            (Some(step), Some(place)) if self.passed == 0 => {
                *place = step;
                self.len += 1;
            }
            _ => self.passed += 1,
        }
    }

    pub fn leave(&mut self) {
        if self.passed > 0 {
            self.passed -= 1;
        } else {
            self.len = self.len.saturating_sub(1);
        }
    }
}
