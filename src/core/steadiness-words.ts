// What /status says of how models are kept on their course; nothing where that is switched off.

import type { AntiDriftConfig, ProprioceptionConfig } from './config/steadiness.ts';

export function steadinessLines({
  antiDrift,
  proprioception,
}: {
  readonly antiDrift: AntiDriftConfig;
  readonly proprioception: ProprioceptionConfig;
}): readonly string[] {
  return [...driftLines(antiDrift), ...senseLines(proprioception)];
}

function driftLines({ enabled, pollutionThreshold }: AntiDriftConfig): readonly string[] {
  if (enabled === 'off') return [];
  const which = enabled === 'on' ? 'all' : 'small and medium';
  return [`Anti-drift: ${which} local models; answers are junk from ${pollutionThreshold} on`];
}

function senseLines(config: ProprioceptionConfig): readonly string[] {
  if (!config.enabled) return [];
  const { groundingInterval, rawWindow, lightWindow } = config;
  const parts = [
    ...(groundingInterval > 0 ? [`a note every ${groundingInterval} rounds`] : []),
    ...(config.dynamicToolScoping ? ['tools of local models by phase'] : []),
    ...(config.gradientMemory ? [`turns whole ${rawWindow}, light to ${lightWindow}`] : []),
    ...(config.audienceAwareCompaction ? ['summaries for their reader'] : []),
    ...(config.ahaChannel ? ['critical reports of helpers'] : []),
  ];
  return parts.length === 0 ? [] : [`Proprioception: ${parts.join('; ')}`];
}
