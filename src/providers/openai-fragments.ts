// Puts the fragments of tool calls together, with the liberties vendors take: no index, no id, one
// index for several calls, the name repeated.

import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { createCallIds, type MintCallId } from './call-ids.ts';
import type { Completion } from './completion.ts';
import type { ModelEvent, ModelRequest } from './provider.ts';
import { sealed } from './seal.ts';

type Delta = ChatCompletionChunk['choices'][number]['delta'];
type WireFragment = NonNullable<Delta['tool_calls']>[number];
export type Fragment = Omit<WireFragment, 'index'> & {
  readonly index?: number;
  readonly extra_content?: { readonly google?: { readonly thought_signature?: string } };
};
type Slot = { readonly wireId: string; readonly at: number };

export class ToolCallFragments {
  readonly #model: string;
  readonly #mint: MintCallId;
  readonly #completion: Completion;
  /** The newest of each. */
  readonly #byIndex = new Map<number, Slot>();
  readonly #byId = new Map<string, Slot>();
  #newest: Slot | undefined;

  constructor(request: ModelRequest, completion: Completion) {
    this.#model = request.model;
    this.#mint = createCallIds(request.messages);
    this.#completion = completion;
  }

  /** The event of a call that begins with this fragment. */
  push(fragment: Fragment): ModelEvent | undefined {
    const known = this.#slotOf(fragment);
    const begun = known === undefined ? this.#begin(fragment) : undefined;
    const at = known?.at ?? begun?.at ?? -1;
    this.#completion.toolArguments(at, fragment.function?.arguments ?? '');
    return begun?.event;
  }

  #begin(fragment: Fragment) {
    const wireId = fragment.id ?? '';
    const id = this.#mint(wireId);
    const begun = this.#completion.toolCall({ id, name: fragment.function?.name ?? '' });
    const slot = { wireId, at: begun.at };
    if (fragment.index !== undefined) this.#byIndex.set(fragment.index, slot);
    this.#byId.set(wireId, slot);
    this.#newest = slot;
    const signature = fragment.extra_content?.google?.thought_signature;
    if (signature) this.#completion.sealThinking(sealed(`${this.#model}#${id}`, signature));
    return begun;
  }

  #slotOf({ id = '', index }: Fragment): Slot | undefined {
    if (index === undefined && id === '') return this.#newest;
    const slot = index === undefined ? this.#byId.get(id) : this.#byIndex.get(index);
    const isAnother = slot !== undefined && id !== '' && slot.wireId !== '' && slot.wireId !== id;
    return isAnother ? undefined : slot;
  }
}
