package precision

// Tally counts what the judge saw of one script on one driver.
type Tally struct {
	Decisions, Admitted int64
	// Early counts calls that the script admits and the exact oracle, fed with the
	// same admissions, does not.
	Early int64
	// LatestNs is the largest distance from the instant at which the exact oracle
	// would admit a refused call to the one at which the script would.
	LatestNs int64
	// WrongReplies, WrongStates and WrongTTLs count what differs from the integers.
	WrongReplies, WrongStates, WrongTTLs int64
	// Differences counts calls whose outcome is not the native port's.
	Differences int64
	// Broken describes the first call that falls short, "" when none does; BrokenAt is
	// that call's index in its trace.
	Broken   string
	BrokenAt int
}

// Sound tells whether every claim held: nothing is described as broken, and nothing is
// counted as wrong.
func (t *Tally) Sound() bool {
	return t.Broken == "" &&
		t.Early == 0 && t.WrongReplies == 0 && t.WrongStates == 0 && t.WrongTTLs == 0 && t.Differences == 0
}

// Add takes over the counts of another tally.
func (t *Tally) Add(u *Tally) {
	t.Decisions += u.Decisions
	t.Admitted += u.Admitted
	t.Early += u.Early
	t.LatestNs = max(t.LatestNs, u.LatestNs)
	t.WrongReplies += u.WrongReplies
	t.WrongStates += u.WrongStates
	t.WrongTTLs += u.WrongTTLs
	t.Differences += u.Differences
	if t.Broken == "" {
		t.Broken, t.BrokenAt = u.Broken, u.BrokenAt
	}
}

// Judge holds the outcomes that a driver gave of a trace against the oracle, and
// against the native port's.
func Judge(t *Trace, outcomes []Outcome) Tally {
	j := NewClaims(t.Script)
	for i := range t.Calls {
		c, o, n := &t.Calls[i], &outcomes[i], &t.Native[i]
		j.Call(c, o)
		// the long run judges the native port's own outcomes: the very same
		if o != n && (o.Err != n.Err || o.Verdict != n.Verdict || o.State != n.State || !o.ttlIs(n.TTLMs)) {
			j.fail(&j.Differences, "outcome %+v, native %+v", *o, *n)
		}
	}
	return j.Tally
}

// ttlIs tells whether the key's ttl is or may be ms.
func (o *Outcome) ttlIs(ms int64) bool {
	return o.TTLMs <= ms && ms <= o.TTLMs+o.TTLSlackMs
}
