// The part of the configuration about several models that share the work of a turn.

import { z } from 'zod';
import { AGENT_MODES } from './mode.ts';

export const modeFields = {
  mode: z
    .enum(AGENT_MODES)
    .default('inline')
    .describe(
      'inline: one model does all; the others share a turn among several. /mode changes it.',
    ),
};
