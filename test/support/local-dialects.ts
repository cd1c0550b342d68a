// What Ollama, LM Studio, llama.cpp and vLLM answer beside the calls of their models, as strictly as they
// do: which paths exist, what a model must be called, and that it is loaded before it answers.

export type SideCall = {
  readonly method: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
};
export type SideAnswer = {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};
export type SideRoute = (call: SideCall) => SideAnswer | Promise<SideAnswer> | undefined;

export type LocalKind = 'ollama' | 'lmstudio' | 'llamacpp' | 'vllm';

export type LocalModelSpec = {
  readonly id: string;
  /** Of the window it is loaded with. */
  readonly loadedTokens: number;
  /** Of the window it was made for. */
  readonly trainedTokens: number;
  readonly capabilities?: readonly string[];
  /** Ollama hands it on to there. */
  readonly remoteHost?: string;
  /** Of its files. */
  readonly bytes?: number;
};

export interface LocalDialect {
  readonly route: SideRoute;
  readonly loaded: Set<string>;
  /** Path and model of each side call, in order. */
  readonly asked: string[];
  /** Calls to load a model that are answered with this first. */
  readonly refuseLoads: SideAnswer[];
}

const ok = (body: unknown): SideAnswer => ({ status: 200, body });
const missing: SideAnswer = { status: 404, body: { error: 'not found' } };

const remoteOf = ({ id, remoteHost }: LocalModelSpec) =>
  remoteHost === undefined ? {} : { remote_host: remoteHost, remote_model: id };

/** `keepsAll`: it loads a model beside those that it holds. */
export function localDialect(
  kind: LocalKind,
  models: readonly LocalModelSpec[],
  { keepsAll = false }: { readonly keepsAll?: boolean } = {},
): LocalDialect {
  const loaded = new Set<string>(
    kind === 'llamacpp' || kind === 'vllm' ? [models[0]?.id ?? ''] : [],
  );
  const asked: string[] = [];
  const refuseLoads: SideAnswer[] = [];
  const named = (body: SideCall['body']) => models.find(({ id }) => id === body['model']);
  const load = (model: LocalModelSpec) => {
    const refused = refuseLoads.shift();
    if (refused !== undefined) return refused;
    if (!keepsAll) loaded.clear();
    loaded.add(model.id);
    return ok({ model: model.id, done: true, done_reason: 'load', response: '' });
  };
  const routes: Readonly<
    Record<LocalKind, Readonly<Record<string, (call: SideCall) => SideAnswer>>>
  > = {
    ollama: {
      'POST /api/show': ({ body }) => {
        const model = named(body);
        if (model === undefined) return { status: 404, body: { error: 'model not found' } };
        return ok({
          ...remoteOf(model),
          modelfile: '# x',
          parameters: 'stop "<|im_end|>"\ntemperature 0.6',
          model_info: { 'general.architecture': 'sim', 'sim.context_length': model.trainedTokens },
          ...(model.capabilities === undefined ? {} : { capabilities: model.capabilities }),
        });
      },
      'GET /api/tags': () =>
        ok({
          models: models.map((each) => ({
            ...{ name: each.id, model: each.id, size: each.bytes ?? 0 },
            ...remoteOf(each),
          })),
        }),
      'GET /api/ps': () =>
        ok({
          models: models
            .filter(({ id }) => loaded.has(id))
            .map(({ id, loadedTokens, bytes = 0 }) => ({
              ...{ name: id, model: id, context_length: loadedTokens },
              ...{ size: bytes, size_vram: bytes },
            })),
        }),
      'POST /api/generate': ({ body }) => {
        const model = named(body);
        if (model === undefined || body['prompt'] !== undefined) return missing;
        if (body['keep_alive'] !== 0) return load(model);
        loaded.delete(model.id);
        return ok({ model: model.id, done: true, done_reason: 'unload', response: '' });
      },
    },
    lmstudio: {
      'GET /api/v0/models': () =>
        ok({
          object: 'list',
          data: models.map(({ id, trainedTokens, loadedTokens, capabilities }) => ({
            ...{ id, object: 'model', type: 'llm', max_context_length: trainedTokens },
            ...(capabilities === undefined ? {} : { capabilities }),
            ...(loaded.has(id)
              ? { state: 'loaded', loaded_context_length: loadedTokens }
              : { state: 'not-loaded' }),
          })),
        }),
      'GET /api/v1/models': () =>
        ok({
          models: models.map(({ id, bytes = 0 }) => ({
            ...{ type: 'llm', key: id, size_bytes: bytes },
            loaded_instances: loaded.has(id) ? [{ id: `${id}:1`, config: {} }] : [],
          })),
        }),
      'POST /api/v1/models/unload': ({ body }) => {
        const id = String(body['instance_id']).replace(/:1$/, '');
        if (!loaded.delete(id)) return { status: 404, body: { error: 'no such instance' } };
        return ok({ instance_id: body['instance_id'] });
      },
      'POST /v1/chat/completions': ({ body }) => {
        const model = named(body);
        if (model === undefined || body['stream'] !== false) return missing;
        const answer = load(model);
        const message = { role: 'assistant', content: 'H' };
        return answer.status === 200
          ? ok({ choices: [{ index: 0, message, finish_reason: 'length' }] })
          : answer;
      },
    },
    llamacpp: {
      'GET /props': () =>
        ok({
          default_generation_settings: { n_ctx: models[0]?.loadedTokens, params: {} },
          total_slots: 1,
        }),
    },
    vllm: {
      'GET /v1/models': () =>
        ok({
          object: 'list',
          data: models.map(({ id, loadedTokens }) => ({ id, max_model_len: loadedTokens })),
        }),
    },
  };
  return {
    loaded,
    asked,
    refuseLoads,
    route(call) {
      const { method, path, body } = call;
      const isStream = body['stream'] === true;
      const route = isStream ? undefined : routes[kind][`${method} ${path}`];
      if (route === undefined) return undefined;
      asked.push([path, body['model']].filter(Boolean).join(' '));
      return route(call);
    },
  };
}

/** Asked of a server of which nobody knows the kind; those that have them not answer 404. */
export const SIDE_PATHS = ['/props', '/api/v0/models', '/api/show', '/api/ps'];
