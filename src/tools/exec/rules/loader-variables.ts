// Environment variables by which whoever sets one makes a program load or run something else (case
// X07). They are passed on to no program that the agent starts.

const NAMES = new Set([
  ...['NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'NODE_REPL_EXTERNAL_MODULE'],
  ...['PYTHONPATH', 'PYTHONHOME', 'PYTHONSTARTUP', 'PYTHONINSPECT', 'PYTHONBREAKPOINT'],
  ...['PYTHONEXECUTABLE', 'PYTHONUSERBASE', 'PYTHONWARNINGS', 'PYTHONPLATLIBDIR'],
  ...['PERL5LIB', 'PERL5OPT', 'PERLLIB', 'PERL5DB', 'RUBYLIB', 'RUBYOPT', 'GEM_HOME', 'GEM_PATH'],
  ...['JAVA_TOOL_OPTIONS', '_JAVA_OPTIONS', 'JDK_JAVA_OPTIONS', 'CLASSPATH', 'LUA_PATH'],
  ...['LUA_CPATH', 'LUA_INIT', 'PHPRC', 'PHP_INI_SCAN_DIR', 'BASH_ENV', 'ENV', 'SHELLOPTS'],
  ...['BASHOPTS', 'PROMPT_COMMAND', 'PS4', 'IFS', 'CDPATH', 'GLOBIGNORE', 'ZDOTDIR', 'FPATH'],
  ...['PATH', 'HOME', 'TMPDIR', 'SHELL', 'EDITOR', 'VISUAL', 'PAGER', 'MANPAGER', 'BROWSER'],
  ...['GCONV_PATH', 'HOSTALIASES', 'LOCPATH', 'NLSPATH', 'RES_OPTIONS', 'TZDIR', 'GETCONF_DIR'],
  ...['OPENSSL_CONF', 'OPENSSL_ENGINES', 'OPENSSL_MODULES', 'SSLKEYLOGFILE', 'COMPILER_PATH'],
  ...['DOTNET_STARTUP_HOOKS', 'CORECLR_PROFILER', 'COR_PROFILER', 'DENO_DIR', 'BUN_OPTIONS'],
  ...['ELECTRON_RUN_AS_NODE', 'R_PROFILE', 'R_PROFILE_USER', 'R_ENVIRON', 'R_ENVIRON_USER'],
  ...['SSH_AUTH_SOCK', 'SSH_ASKPASS', 'GPG_AGENT_INFO', 'DBUS_SESSION_BUS_ADDRESS', 'DISPLAY'],
]);
const PREFIXES = [
  ...['LD_', 'DYLD_', 'GIT_', 'NPM_CONFIG_', 'BASH_FUNC_', 'MALLOC_', 'GLIBC_', 'COR_', 'CORECLR_'],
  ...['NANOBOT_', 'PIP_', 'CARGO_', 'RUSTC', 'GCC_', 'XDG_'],
];

export function isLoaderVariable(name: string): boolean {
  const upper = name.toUpperCase();
  return NAMES.has(upper) || PREFIXES.some((prefix) => upper.startsWith(prefix));
}
