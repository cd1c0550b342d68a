// The providers as the program composes them: the registry, the search for local servers, the proof of
// a model. Adding a vendor of the OpenAI dialect is a row in vendors.ts.

export { createDemoProvider } from './demo.ts';
export { discoverLocalModels, type LocalServer } from './local-servers.ts';
export type { LocalSite, SiteReport } from './local-site.ts';
export { createLocalSites, type LocalSites } from './local-sites.ts';
export type { Peers } from './peer.ts';
export { type ModelProof, proveModel } from './prove-model.ts';
export {
  createModelRegistry,
  type LocalModel,
  type ModelRegistryDeps,
  type VendorRegistry,
} from './registry.ts';
export type { LoadedImage } from './seen-images.ts';
export { vendorOf } from './vendors.ts';
