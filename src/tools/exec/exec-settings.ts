// From the configuration to what the executor works with.

import type { ExecConfig } from '../../core/config-exec.ts';
import type { ExecSettings } from './exec-request.ts';
import type { FoundSandbox } from './find-sandbox.ts';
import { createUnconfined } from './unconfined.ts';

const MEGABYTE = 1_000_000;

export function execSettings(config: ExecConfig): ExecSettings {
  const { limits } = config;
  return {
    isEnabled: config.enabled,
    hasNetwork: config.network === 'on',
    readOnly: config.readOnly,
    passedOn: config.env,
    limits: {
      timeoutMs: limits.timeoutSecs * 1000,
      memoryBytes: limits.memoryMb * MEGABYTE,
      maxProcesses: limits.maxProcesses,
      cpuSeconds: limits.cpuSecs,
      fileBytes: limits.maxFileMb * MEGABYTE,
      diskBytes: limits.maxDiskMb * MEGABYTE,
      outputBytes: limits.outputBytes,
    },
  };
}

/** What an owner asks for, of what was found: never less than that unless they switched it off. */
export function usedSandbox(
  { sandbox }: Pick<ExecConfig, 'sandbox'>,
  found: FoundSandbox,
  nodePath: string,
): FoundSandbox {
  if (sandbox === 'off') return { kind: 'found', sandbox: createUnconfined(nodePath) };
  if (sandbox === 'auto' || found.kind === 'missing') return found;
  if (found.sandbox.kind === sandbox) return found;
  const reason = `${sandbox} is not the sandbox of this system`;
  return { kind: 'missing', reason, remedy: 'Set tools.exec.sandbox to "auto".' };
}
