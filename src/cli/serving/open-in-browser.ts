import { spawn } from 'node:child_process';

/** Opens a page in the user's browser. Does not wait for it. */
export function openInBrowser(url: string, onError: (problem: string) => void): void {
  const [program, ...parameters] = openerOf(process.platform);
  const child = spawn(program, [...parameters, url], { stdio: 'ignore', detached: true });
  child.on('error', ({ message }) => onError(`The browser could not be opened: ${message}. Open ${url} yourself.`));
  child.unref();
}

function openerOf(platform: NodeJS.Platform): readonly [string, ...string[]] {
  if (platform === 'darwin') return ['open'];
  if (platform === 'win32') return ['cmd', '/c', 'start', ''];
  return ['xdg-open'];
}
