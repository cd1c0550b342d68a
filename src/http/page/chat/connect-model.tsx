// The model of the setup inside the chat; loaded where only the demo answers.

import { useEffect } from 'preact/hooks';
import type { SetupState } from '../../../features/setup/rules/views.ts';
import { type PageParts, Shown, useLive } from '../console/parts.tsx';
import { ModelCard } from '../console/setup-model.tsx';

export type ConnectModelProps = {
  readonly parts: PageParts;
  /** Also if it was connected elsewhere. */
  readonly onConnected: (model: string) => void;
};

export function ConnectModel({ parts, onConnected }: ConnectModelProps) {
  const live = useLive<SetupState>(parts, '/api/v1/setup/events');
  const model = live.value.value?.model;
  const name = model === undefined || model.isDemo ? undefined : model.name;
  useEffect(() => {
    if (name !== undefined) onConnected(name);
  }, [name]);
  return (
    <div class="view">
      <Shown live={live} show={(state) => <ModelCard parts={parts} model={state.model} />} />
    </div>
  );
}
