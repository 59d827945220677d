//! Tables of rules that decide the next status of a resource.
//!
//! Each event has its own table. The conditions and texts of its rules read only the facts of the event, so a
//! caller cannot omit a fact that a rule reads, or pass a fact that no rule reads.

/// A kind of resource that has a status.
pub(crate) trait StateMachine: 'static {
    /// Its statuses.
    type Status: Copy + PartialEq + 'static;
    /// The reasons why its rules refuse an event.
    type Refusal: Copy + 'static;
    /// What its rules discard.
    type Reset: Copy + 'static;
}

/// The rules of one event.
pub(crate) trait TransitionTable: Sized + 'static {
    /// The resource.
    type Machine: StateMachine;
    /// The facts of the event.
    type Facts<'a>;
    /// The rules. The first one that matches counts.
    const RULES: &'static [TransitionRule<Self>];
}

type Status<T> = <<T as TransitionTable>::Machine as StateMachine>::Status;

/// A condition of a rule.
pub(crate) struct Condition<T: TransitionTable> {
    /// The condition in words.
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/state-machines.md"))]
    pub(crate) text: &'static str,
    holds: for<'a> fn(&T::Facts<'a>) -> bool,
}

/// The effect of a rule on the status.
pub(crate) enum RuleOutcome<M: StateMachine> {
    /// The resource gets this status, which it may have already.
    To(M::Status),
    /// Nothing changes.
    Stay,
    /// The event is refused.
    Refused(M::Refusal),
}

/// The status text of a rule.
pub(crate) enum StatusInfo<T: TransitionTable> {
    /// The text stays.
    Unchanged,
    Text(&'static str),
    /// This text, and after it the details.
    WithDetails(&'static str, Details<T>),
}

/// The part of a status text that depends on facts.
pub(crate) struct Details<T: TransitionTable> {
    /// The details in words.
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/state-machines.md"))]
    pub(crate) words: &'static str,
    pub(crate) text: for<'a> fn(&T::Facts<'a>) -> String,
}

/// A rule: a row of the table of an event.
pub(crate) struct TransitionRule<T: TransitionTable> {
    pub(crate) from: &'static [Status<T>],
    pub(crate) condition: Option<Condition<T>>,
    pub(crate) outcome: RuleOutcome<T::Machine>,
    pub(crate) info: StatusInfo<T>,
    pub(crate) resets: Option<<T::Machine as StateMachine>::Reset>,
    /// Why the rule exists although no resource gets one of its sources.
    pub(crate) legacy: Option<&'static str>,
}

impl<T: TransitionTable> TransitionRule<T> {
    const fn new(from: &'static [Status<T>], outcome: RuleOutcome<T::Machine>, info: StatusInfo<T>) -> Self {
        Self { from, condition: None, outcome, info, resets: None, legacy: None }
    }

    /// Returns a rule that leads to a status.
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

    /// Returns the rule with a condition, of which `text` is the form in words.
    pub(crate) const fn when(mut self, text: &'static str, holds: for<'a> fn(&T::Facts<'a>) -> bool) -> Self {
        self.condition = Some(Condition { text, holds });
        self
    }

    /// Returns the rule with a reset.
    pub(crate) const fn resetting(mut self, reset: <T::Machine as StateMachine>::Reset) -> Self {
        self.resets = Some(reset);
        self
    }

    /// Returns the rule with the reason why it exists although no resource gets one of its sources.
    pub(crate) const fn legacy(mut self, reason: &'static str) -> Self {
        self.legacy = Some(reason);
        self
    }

    /// Returns `true` if the rule applies to a resource with this status.
    pub(crate) fn matches(&self, status: Status<T>, facts: &T::Facts<'_>) -> bool {
        self.from.contains(&status)
            && self.condition.as_ref().is_none_or(|condition| (condition.holds)(facts))
    }
}

impl<T: TransitionTable> StatusInfo<T> {
    /// Returns the text; `None` if it stays.
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
