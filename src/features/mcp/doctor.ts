// Checks of `nanobot doctor` for tools: unreachable servers and tools with a missing requirement.

import { type Finding, type Machine, ok, warn } from '../../cli/doctor/machine-checks.ts';
import { findRunningGateway } from '../../kernel/home-state.ts';
import { t } from '../../lib/texts.ts';
import { reportTooling, toolServerLine } from './tooling.ts';

export async function checkTools(
  { home, clock }: Machine,
  token: string,
): Promise<readonly Finding[]> {
  const tooling = await reportTooling(await findRunningGateway(home), token);
  if (tooling === undefined) return [];
  const servers = tooling.servers.map((server) => {
    const text = `${server.name}: ${toolServerLine(server, clock.now())}`;
    const isWell = server.state.kind === 'connected' || server.state.kind === 'starting';
    if (isWell) return ok('tool-server', text);
    if (server.state.kind === 'login') {
      return warn('tool-server', text, t`Log in: nanobot mcp login ${server.name}`);
    }
    return warn('tool-server', text, t`Check mcpServers.${server.name} in config.json.`);
  });
  const missing = tooling.missing.map(({ name, reason }) =>
    ok('tool', t`${name}: not available (${reason})`),
  );
  return [...servers, ...missing];
}
