// Checks of `nanobot doctor` for tools: unreachable servers and tools with a missing requirement.

import { type Finding, ok, warn } from '../../cli/doctor/machine-checks.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { findRunningGateway } from '../../kernel/home-state.ts';
import { t } from '../../lib/texts.ts';
import { reportTooling, toolServerLine } from './tooling.ts';

const LOG_IN = t`Its tools are available once you allowed the access.`;

export async function checkTools(
  { home, clock }: Terminal,
  token: string,
): Promise<readonly Finding[]> {
  const tooling = await reportTooling(await findRunningGateway(home), token);
  if (tooling === undefined) return [];
  const servers = tooling.servers.map((server) => {
    const text = `${server.name}: ${toolServerLine(server, clock.now())}`;
    const isWell = server.state.kind === 'connected' || server.state.kind === 'starting';
    if (isWell) return ok(t`tool server`, text);
    if (server.state.kind === 'login') return warn(t`tool server`, text, LOG_IN);
    return warn(t`tool server`, text, t`Check mcpServers.${server.name} in config.json.`);
  });
  const missing = tooling.missing.map(({ name, reason }) =>
    ok('tool', t`${name}: not available (${reason})`),
  );
  return [...servers, ...missing];
}
