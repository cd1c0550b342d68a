// Knows the configuration of another program by its keys, so that its owner is met with a way on.

/** Keys that only that program has; two of them are no slip of the pen. */
const MARKS = [
  'agents.defaults.provider',
  'agents.defaults.memoryWindow',
  'agents.defaults.contextWindowTokens',
  'providers.custom',
  'channels.sendProgress',
  'channels.discord',
  'channels.whatsapp.bridgeToken',
  'gateway.heartbeat',
  'tools.restrictToWorkspace',
  'tools.mcpServers',
];

/** Whether keys that are not ours are those of the Python program, whose home has the same name. */
export function isPythonConfig(unknownKeys: readonly string[]): boolean {
  return MARKS.filter((mark) => unknownKeys.includes(mark)).length > 1;
}
