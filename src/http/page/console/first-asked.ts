// What each view of the console asks for as soon as it opens. The page asks for it beside the code of the
// view, which takes the answers by the same names.

export const FIRST_ASKED = {
  configuration: {
    live: '/api/v1/configuration/events',
    schema: '/api/v1/configuration/schema',
  },
  memory: { notes: '/api/v1/memory', skills: '/api/v1/skills' },
  operations: { live: '/api/v1/operations/events', backups: '/api/v1/backups/events' },
  people: { live: '/api/v1/people/events', rules: '/api/v1/approvals/rules/events' },
  runs: { live: '/api/v1/runs/events' },
  schedules: {
    live: '/api/v1/schedules/events',
    heartbeat: '/api/v1/heartbeat/events',
    configuration: '/api/v1/configuration',
  },
  sessions: { live: '/api/v1/sessions/events' },
  setup: { live: '/api/v1/setup/events', toolServers: '/api/v1/tool-servers/events' },
  usage: { live: '/api/v1/usage/events' },
} as const;

export const firstAsked = (view: string): readonly string[] => {
  const of: Readonly<Record<string, Readonly<Record<string, string>>>> = FIRST_ASKED;
  return Object.values(of[view] ?? {});
};
