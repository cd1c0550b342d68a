// From the configuration to what the executor works with.

import type { ExecConfig } from '../../core/config/exec.ts';
import type { ExecSettings } from './exec-request.ts';

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
