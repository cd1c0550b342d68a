// Where the files of workflows stand in the workspace. Writing there is a rule.

export const WORKFLOWS_FOLDER = 'workflows';
export const CAPABILITIES_FOLDER = 'capabilities';
