import { rebuildContract } from './rebuild.contract.ts';
import { rebuildForms } from './rebuild-forms.ts';

for (const [name, form] of Object.entries(rebuildForms)) rebuildContract(name, form);
