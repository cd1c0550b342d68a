// What runs programs in tests: as the gateway builds it, over a temporary home.

import { realpathSync } from 'node:fs';
import type { Environment } from '../../src/kernel/config/environment.ts';
import { execSettings } from '../../src/tools/exec/exec.ts';
import { createExecutor, type Executor } from '../../src/tools/exec/executor.ts';
import {
  type FoundSandbox,
  findSandbox,
  type SandboxSystem,
  thisSystem,
} from '../../src/tools/exec/find-sandbox.ts';
import { execSchema } from '../../src/tools/exec/settings.ts';

export type TestExecutorOptions = {
  readonly home: string;
  /** As under `tools.exec`. */
  readonly config?: object;
  readonly env?: Environment;
  readonly redact?: (text: string) => string;
  readonly system?: Partial<SandboxSystem>;
};

type TestExecutor = Executor & { readonly found: FoundSandbox };

const OWNER = 'test';

/** With the sandbox of this machine. */
export async function createTestExecutor(options: TestExecutorOptions): Promise<TestExecutor> {
  const { sandbox, container } = execSchema.parse(options.config ?? {});
  const system = { ...thisSystem(options.env ?? process.env), ...options.system };
  const found = await findSandbox(system, { sandbox, container, owner: OWNER });
  return { ...executorOver(found, options), found };
}

/** Where no sandbox is installed. */
export function createIdleExecutor(): Executor {
  const home = process.cwd();
  return executorOver({ kind: 'missing', reason: 'none here', remedy: 'Install one.' }, { home });
}

function executorOver(found: FoundSandbox, options: TestExecutorOptions): Executor {
  const config = execSchema.parse(options.config ?? {});
  const nodePath = realpathSync(process.execPath);
  return createExecutor({
    sandbox: () => found,
    settings: () => execSettings(config),
    forbidden: [realpathSync(options.home)],
    env: options.env ?? process.env,
    nodePath,
    redact: options.redact ?? ((text) => text),
  });
}
