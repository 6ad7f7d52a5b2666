import type { Plugin } from 'graphql-yoga';

/** A plugin whose hooks run only while it is needed. Otherwise no operation reaches its code. */
export function onlyWhile(isNeeded: () => boolean, plugin: Plugin): Plugin {
  const hooks = Object.entries(plugin) as [string, (given: unknown) => unknown][]; // a plugin consists of hooks
  return Object.fromEntries(
    hooks.map(([name, hook]) => [name, (given: unknown) => (isNeeded() ? hook(given) : undefined)]),
  );
}
