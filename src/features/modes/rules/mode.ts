// How a turn shares its work among models: the main model alone, with a runner that digests results,
// with a router and a specialist, or with a supervisor over declared specialists.

export const AGENT_MODES = ['inline', 'delegated', 'trio', 'supervisor'] as const;
export type AgentMode = (typeof AGENT_MODES)[number];

/** How the main model is asked in one call. */
export type MainCue = {
  /** `none`: it only writes; what is to be done, somebody else decides. */
  readonly tools: 'offered' | 'none';
  /** Told in this call alone and never recorded. */
  readonly notes: readonly string[];
};
