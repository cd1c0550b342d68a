// The tables of state.db, as the steps that lead to them: step n takes user_version n to n + 1. A
// step that was released is never edited; a change is a new step.

/**
 * inbound: `pending` rows wait or belong to a running turn. A try that is no failure ended with its
 * process; `deaths` counts those where no other suspect ran. session_lane: one row per session; it
 * is ready at `ready_at`, or held by a turn that owns all pending rows up to `held_through`.
 * outbound: per lane only the oldest open row has a `ready_at`; it is set for the next one when
 * that row settles, so finding what is due never looks at what waits behind it. A `sent` row with
 * `bounced_at` came back undeliverable after the platform had taken it. `begun_at` is when the try began
 * of which the first part arrived. `requesting` is 0 while a claimed row surely has no request under way,
 * and NULL where its channel does not tell. `stopped` is the reason why no further part is to be sent.
 * draft: an empty `native_id` is one that was about to be placed.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE inbound (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'recorded', 'cancelled', 'dead', 'dropped')),
    body TEXT,
    reason TEXT,
    turn TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    received_at INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    claimed_at INTEGER,
    settled_at INTEGER
  );
  CREATE INDEX inbound_pending ON inbound (session, seq) WHERE state = 'pending';
  CREATE INDEX inbound_dead ON inbound (seq) WHERE state = 'dead';

  CREATE TABLE session_lane (
    session TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    held_through INTEGER,
    stop_reason TEXT,
    ready_at INTEGER
  ) WITHOUT ROWID;
  CREATE INDEX session_lane_ready ON session_lane (ready_at) WHERE ready_at IS NOT NULL;
  CREATE INDEX session_lane_held ON session_lane (owner) WHERE owner IS NOT NULL;

  CREATE TABLE outbound (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    lane TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'dead', 'unknown', 'dropped')),
    body TEXT,
    finalizes TEXT,
    reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    in_doubt INTEGER NOT NULL DEFAULT 0,
    was_repeated INTEGER NOT NULL DEFAULT 0,
    parts TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    queued_at INTEGER NOT NULL,
    claimed_at INTEGER,
    settled_at INTEGER,
    ready_at INTEGER
  );
  CREATE INDEX outbound_open ON outbound (lane, ord) WHERE state IN ('queued', 'sending');
  CREATE INDEX outbound_ready ON outbound (channel, ready_at) WHERE ready_at IS NOT NULL;
  CREATE INDEX outbound_dead ON outbound (ord) WHERE state IN ('dead', 'unknown');

  CREATE TABLE draft (
    turn TEXT PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    native_id TEXT NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE cursor (
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    value TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (channel, account)
  ) WITHOUT ROWID;

  CREATE TABLE key_value (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) WITHOUT ROWID;
  `,
  `
  ALTER TABLE outbound ADD COLUMN bounced_at INTEGER;
  ALTER TABLE outbound ADD COLUMN bounce_reason TEXT;
  `,
  `
  ALTER TABLE outbound ADD COLUMN begun_at INTEGER;
  `,
  `
  ALTER TABLE inbound ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE outbound ADD COLUMN requesting INTEGER;
  ALTER TABLE outbound ADD COLUMN stopped TEXT;
  `,
  `
  ALTER TABLE draft ADD COLUMN reply_to TEXT;
  `,
  `
  ALTER TABLE inbound ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
  `,
];
