import { type CommandDef, defineCommand } from 'citty';
import { commandTree } from '../shared/command-tree.ts';
import { withErrorReporting } from '../shared/exit-with-error.ts';
import { bashCompletion, fishCompletion, zshCompletion } from './completion-scripts.ts';

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

/** Defines a command that prints the completion of `main` and all commands below it. */
export function completionOf(main: CommandDef): CommandDef {
  const of = (shell: keyof typeof scripts, how: string) =>
    defineCommand({
      meta: { name: shell, description: `Print the completion for ${shell}. ${how}` },
      run: withErrorReporting(async () => void process.stdout.write(scripts[shell](await commandTree(main)))),
    });
  return defineCommand({
    meta: { name: 'completion', description: 'Print the completion script of a shell, generated from the commands.' },
    subCommands: {
      bash: of('bash', 'In ~/.bashrc: eval "$(refold completion bash)"'),
      zsh: of('zsh', 'In ~/.zshrc, after compinit: eval "$(refold completion zsh)"'),
      fish: of('fish', 'In ~/.config/fish/config.fish: refold completion fish | source'),
    },
  });
}
