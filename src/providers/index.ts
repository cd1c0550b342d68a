// The providers as the program composes them: the registry, the search for local servers, the proof of
// a model. Adding a vendor of the OpenAI dialect is a row in vendors.ts.

export { createDemoProvider } from './demo.ts';
export { discoverLocalModels, type LocalServer } from './local-servers.ts';
export { type ModelProof, proveModel } from './prove-model.ts';
export { createModelRegistry, type ModelRegistryDeps } from './registry.ts';
export type { LoadedImage } from './seen-images.ts';
