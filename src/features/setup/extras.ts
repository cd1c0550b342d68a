// What is set up beside the model and the channels, for the page: who listens and speaks, and who searches.

import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { defined } from '../../lib/json/json.ts';
import { webSearchAccess } from '../../tools/search/search.ts';
import { readyEngines } from '../../tools/search/web-search.ts';
import { chosenEngines } from '../voice/index.ts';
import type { SetupState } from './rules/views.ts';

type Engine = ReturnType<typeof chosenEngines>[keyof ReturnType<typeof chosenEngines>];

export function extrasOf(config: Config, env: Environment): Pick<SetupState, 'voice' | 'search'> {
  const { transcription, speech } = chosenEngines(config, env);
  return {
    voice: defined({ listening: nameOf(transcription), speaking: nameOf(speech) }),
    search: { engines: [...readyEngines(webSearchAccess(() => config, env).settings())] },
  };
}

function nameOf(engine: Engine): string | undefined {
  if (engine === undefined) return undefined;
  return engine.kind === 'command' ? engine.argv[0] : `${engine.name} ${engine.model}`;
}
