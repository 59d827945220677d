//! Defines tables of rules that decide the next status of a host or cluster.
//!
//! Each event has its own table. The rules of an event read only the facts that the event carries. So a caller cannot
//! omit a fact that a rule reads, or pass a fact that no rule reads.

/// A kind of resource whose status follows rules: hosts or clusters.
pub(crate) trait StateMachine: 'static {
    type Status: Copy + PartialEq + 'static;
    /// The reasons why a rule can refuse an event.
    type Refusal: Copy + 'static;
    /// The stored facts that a rule can discard.
    type Reset: Copy + 'static;
}

/// The rules of one event, in order.
pub(crate) trait TransitionTable: Sized + 'static {
    type Machine: StateMachine;
    /// The facts that the event carries.
    type Facts<'a>;
    /// The rules. The first matching rule applies.
    const RULES: &'static [TransitionRule<Self>];
}

type Status<T> = <<T as TransitionTable>::Machine as StateMachine>::Status;

/// A condition of a rule.
pub(crate) struct Condition<T: TransitionTable> {
    /// The condition in words, for the documentation.
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/state-machines.md"))]
    pub(crate) text: &'static str,
    holds: for<'a> fn(&T::Facts<'a>) -> bool,
}

/// The effect of a rule on the status.
pub(crate) enum RuleOutcome<M: StateMachine> {
    /// The resource gets this status, which may equal its current one.
    To(M::Status),
    /// Nothing changes.
    Stay,
    /// The event is refused.
    Refused(M::Refusal),
}

/// The status text that a rule sets.
pub(crate) enum StatusInfo<T: TransitionTable> {
    /// The rule keeps the current text.
    Unchanged,
    Text(&'static str),
    /// A fixed text, followed by details.
    WithDetails(&'static str, Details<T>),
}

/// The part of a status text that depends on facts.
pub(crate) struct Details<T: TransitionTable> {
    /// A description of the details, for the documentation.
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/state-machines.md"))]
    pub(crate) words: &'static str,
    pub(crate) text: for<'a> fn(&T::Facts<'a>) -> String,
}

/// A rule: one row in the table of an event.
pub(crate) struct TransitionRule<T: TransitionTable> {
    pub(crate) from: &'static [Status<T>],
    pub(crate) condition: Option<Condition<T>>,
    pub(crate) outcome: RuleOutcome<T::Machine>,
    pub(crate) info: StatusInfo<T>,
    pub(crate) resets: Option<<T::Machine as StateMachine>::Reset>,
    /// The reason why the rule exists although no resource reaches one of its source statuses. `None` for other rules.
    pub(crate) legacy: Option<&'static str>,
}

impl<T: TransitionTable> TransitionRule<T> {
    const fn new(from: &'static [Status<T>], outcome: RuleOutcome<T::Machine>, info: StatusInfo<T>) -> Self {
        Self { from, condition: None, outcome, info, resets: None, legacy: None }
    }

    /// Returns a rule that changes the status to `to`.
    pub(crate) const fn to(from: &'static [Status<T>], to: Status<T>, info: StatusInfo<T>) -> Self {
        Self::new(from, RuleOutcome::To(to), info)
    }

    /// Returns a rule that changes nothing.
    pub(crate) const fn stay(from: &'static [Status<T>]) -> Self {
        Self::new(from, RuleOutcome::Stay, StatusInfo::Unchanged)
    }

    /// Returns a rule that refuses the event.
    pub(crate) const fn refuse(
        from: &'static [Status<T>],
        refusal: <T::Machine as StateMachine>::Refusal,
    ) -> Self {
        Self::new(from, RuleOutcome::Refused(refusal), StatusInfo::Unchanged)
    }

    /// Adds a condition to the rule. `text` describes it in words.
    pub(crate) const fn when(mut self, text: &'static str, holds: for<'a> fn(&T::Facts<'a>) -> bool) -> Self {
        self.condition = Some(Condition { text, holds });
        self
    }

    /// Adds a reset to the rule.
    pub(crate) const fn resetting(mut self, reset: <T::Machine as StateMachine>::Reset) -> Self {
        self.resets = Some(reset);
        self
    }

    /// Marks a rule whose source statuses are unreachable, with the reason why it exists.
    pub(crate) const fn legacy(mut self, reason: &'static str) -> Self {
        self.legacy = Some(reason);
        self
    }

    /// Returns `true` if the rule matches a resource with this status and these facts.
    pub(crate) fn matches(&self, status: Status<T>, facts: &T::Facts<'_>) -> bool {
        self.from.contains(&status)
            && self.condition.as_ref().is_none_or(|condition| (condition.holds)(facts))
    }
}

impl<T: TransitionTable> StatusInfo<T> {
    /// Returns the new status text, or `None` if the text stays.
    pub(crate) fn write(&self, facts: &T::Facts<'_>) -> Option<String> {
        match self {
            Self::Unchanged => None,
            Self::Text(text) => Some((*text).to_owned()),
            Self::WithDetails(text, details) => Some(format!("{text}{}", (details.text)(facts))),
        }
    }
}

/// Returns the first rule of an event that matches.
pub(crate) fn find_rule<T: TransitionTable>(
    status: Status<T>,
    facts: &T::Facts<'_>,
) -> Option<&'static TransitionRule<T>> {
    T::RULES.iter().find(|rule| rule.matches(status, facts))
}
